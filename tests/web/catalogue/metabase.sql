-- schemas: public
SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND has_schema_privilege(nspname, 'USAGE');

-- privileges: rides
WITH table_privileges AS (SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table,
  pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"."' || replace(t.objectname, '"', '""') || '"',
  'update') AS update, pg_catalog.has_any_column_privilege(current_user, '"' || t.schemaname || '"."' || t.objectname || '"', 'select') AS select
  FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables
        UNION SELECT schemaname, viewname AS objectname FROM pg_catalog.pg_views
        UNION SELECT schemaname, matviewname AS objectname FROM pg_catalog.pg_matviews) t
  WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema'
  AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
SELECT t.* FROM table_privileges t WHERE t.select OR t.update;

-- enums: -
SELECT nspname AS schema, typname AS name, enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid
JOIN pg_namespace n ON n.oid = t.typnamespace GROUP BY nspname, typname, enumlabel;

-- foreign keys: -
SELECT fk_ns.nspname AS "fk-table-schema", fk_table.relname AS "fk-table-name", fk_column.attname AS "fk-column-name",
pk_ns.nspname AS "pk-table-schema", pk_table.relname AS "pk-table-name", pk_column.attname AS "pk-column-name"
FROM pg_constraint c JOIN pg_class fk_table ON c.conrelid = fk_table.oid JOIN pg_namespace fk_ns ON c.connamespace = fk_ns.oid
JOIN pg_attribute fk_column ON c.conrelid = fk_column.attrelid JOIN pg_class pk_table ON c.confrelid = pk_table.oid
JOIN pg_namespace pk_ns ON pk_table.relnamespace = pk_ns.oid JOIN pg_attribute pk_column ON c.confrelid = pk_column.attrelid
WHERE fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND c.contype = 'f'
AND fk_column.attnum = ANY(c.conkey) AND pk_column.attnum = ANY(c.confkey) ORDER BY fk_ns.nspname, fk_table.relname;

-- indexes: rides_pkey
SELECT tmp.table_name, tmp.index_name, trim(both '"' from pg_catalog.pg_get_indexdef(tmp.ci_oid, tmp.pos, false)) AS column_name
FROM (SELECT ct.relname AS table_name, ci.relname AS index_name, ci.oid AS ci_oid,
      (information_schema._pg_expandarray(i.indkey)).n AS pos
      FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
      JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid) JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
      WHERE n.nspname = 'public' AND pg_catalog.pg_get_expr(i.indpred, i.indrelid) IS NULL) AS tmp WHERE tmp.pos = 1;

-- materialised views: by_city
SELECT n.nspname AS schema, c.relname AS name, a.attname AS field, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE c.relkind = 'm' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum;

-- time zone: UTC
SELECT current_setting('TIMEZONE') AS timezone;

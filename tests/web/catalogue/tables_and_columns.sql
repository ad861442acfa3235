-- grafana tables
SELECT CASE WHEN quote_ident(table_schema) = ANY (string_to_array('public', ',')) THEN quote_ident(table_name)
       ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog') ORDER BY 1;

-- grafana columns
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE quote_ident(table_name) = 'rides' ORDER BY ordinal_position;

-- metabase tables
SELECT n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'v' THEN 'VIEW'
       ELSE 'OTHER' END AS type, d.description AS description, NULLIF(c.reltuples, -1) AS estimated_row_count
FROM pg_catalog.pg_class AS c INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
LEFT JOIN pg_catalog.pg_description AS d ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = n.oid AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
ORDER BY type, schema, name;

-- metabase fields
SELECT c.column_name AS name, c.udt_name AS "database-type", c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema",
       c.table_name AS "table-name", pk.column_name IS NOT NULL AS "pk?", col_description(CAST(CAST(format('%I.%I', CAST(c.table_schema
       AS TEXT), CAST(c.table_name AS TEXT)) AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment", c.is_nullable = 'NO' AS required
FROM information_schema.columns AS c LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name
     FROM information_schema.table_constraints AS tc INNER JOIN information_schema.key_column_usage AS kc
     ON tc.constraint_name = kc.constraint_name AND tc.table_schema = kc.table_schema AND tc.table_name = kc.table_name
     WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_name = 'rides' ORDER BY 3;

-- superset tables
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace
ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p']) AND pg_catalog.pg_class.relpersistence != 't'
AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog';

-- dbeaver classes
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,
       pg_catalog.pg_get_partkeydef(c.oid) as partition_key
FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d
ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = 2200 AND c.relkind not in ('i', 'I', 'c');

-- dbeaver columns
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value, dsc.description, dep.objid
FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind not in ('i', 'I', 'c') AND c.relname = 'rides' ORDER BY a.attnum;

-- jdbc tables
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,
CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' WHEN true THEN 'SYSTEM TABLE' WHEN false THEN
CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END ELSE NULL END AS TABLE_TYPE,
d.description AS REMARKS, '' as TYPE_CAT FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0 and d.classoid = 'pg_class'::regclass)
WHERE c.relnamespace = n.oid AND c.relname LIKE 'rid%' ORDER BY TABLE_TYPE, TABLE_SCHEM, TABLE_NAME;

-- schemas: public
SELECT pg_catalog.pg_namespace.nspname FROM pg_catalog.pg_namespace
WHERE pg_catalog.pg_namespace.nspname NOT LIKE 'pg\_%%' ORDER BY pg_catalog.pg_namespace.nspname;

-- databases: nearly
SELECT datname FROM pg_database WHERE datistemplate = false;

-- views: by_city
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid =
pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['v', 'm'])
AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog';

-- columns: fare
SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod)
AS format_type, (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1
FROM pg_catalog.pg_attrdef WHERE pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum =
pg_catalog.pg_attribute.attnum AND pg_catalog.pg_attribute.atthasdef) AS "default", pg_catalog.pg_attribute.attnotnull AS not_null,
pg_catalog.pg_class.relname AS table_name, pg_catalog.pg_description.description AS comment
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid
AND pg_catalog.pg_attribute.attnum > CAST(0 AS SMALLINT) AND NOT pg_catalog.pg_attribute.attisdropped
LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_attribute.attrelid
AND pg_catalog.pg_description.objsubid = pg_catalog.pg_attribute.attnum JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid =
pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relname IN ('rides') ORDER BY pg_catalog.pg_class.relname,
pg_catalog.pg_attribute.attnum;

-- version: PostgreSQL 16.0 (nearly)
select pg_catalog.version();

-- settings: on
show standard_conforming_strings;

-- isolation: read committed
show transaction isolation level;

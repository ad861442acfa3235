-- version: 1600
SELECT current_setting('server_version_num')::int/100 as version;

-- extension: -
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';

-- a table with a time column: big
SELECT quote_ident(table_name) AS table_name FROM information_schema.columns
WHERE quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
      FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
           array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
           string_to_array(current_setting('search_path'), ',') s)
AND data_type IN ('timestamp without time zone', 'timestamp with time zone', 'bigint', 'integer', 'double precision', 'real')
GROUP BY table_name ORDER BY table_name LIMIT 1;

-- tables: people
SELECT quote_ident(table_name) as "table" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema',
'pg_catalog', '_timescaledb_cache', '_timescaledb_catalog') AND table_type = 'BASE TABLE' ORDER BY 1;

-- columns: city
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE
quote_ident(table_name) = 'rides' AND data_type IN ('text', 'character', 'character varying') ORDER BY column_name;

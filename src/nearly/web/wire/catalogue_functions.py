"""The functions of Postgres that clients call in queries of the catalogue, in DuckDB's SQL."""

from __future__ import annotations

VIEWS: dict[str, str] = {
    "its_class": "SELECT oid AS its_oid, relname AS its_name FROM pgc.pg_class",
    "its_namespace": "SELECT oid AS its_oid, nspname AS its_name FROM pgc.pg_namespace",
    "its_type": "SELECT oid AS its_oid, typname AS its_name, sql_name AS its_text FROM pgc.type_names",
    "its_definition": "SELECT oid AS its_oid, of_index AS its_index, of_key AS its_text FROM pgc.definitions",
    "its_view": "SELECT oid AS its_oid, definition AS its_text FROM pgc.pg_matviews JOIN pgc.pg_class ON relname = matviewname",
    "its_key": (
        "SELECT indexrelid AS its_oid, attname AS its_name, list_position(indkey, attnum) AS its_place FROM pgc.pg_index "
        "JOIN pgc.pg_attribute ON attrelid = indrelid AND list_contains(indkey, attnum)"
    ),
}
"""What the functions below read, under names that no query of a client has: what it gives them is meant for its own tables."""
MACROS: tuple[str, ...] = tuple(
    line.strip()
    for line in r"""
format_type(o, m) AS CASE WHEN o = 1700 AND m > 0 THEN 'numeric(' || (((m - 4) >> 16) & 65535) || ',' || ((m - 4) & 65535) || ')' \
    ELSE coalesce((SELECT its_text FROM pgc.its_type WHERE its_oid = o), '???') END
oid_name(o) AS coalesce((SELECT its_name FROM pgc.its_class WHERE its_oid = o), CAST(o AS VARCHAR))
name_oid(n) AS coalesce(try_cast(n AS BIGINT), (SELECT its_oid FROM pgc.its_class WHERE its_name = \
    replace(regexp_replace(n, '^(public|pg_catalog)\.', ''), '"', '')))
type_oid(n) AS coalesce(try_cast(n AS BIGINT), (SELECT its_oid FROM pgc.its_type WHERE n IN (its_name, its_text)))
namespace_name(o) AS coalesce((SELECT its_name FROM pgc.its_namespace WHERE its_oid = o), CAST(o AS VARCHAR))
namespace_oid(n) AS (SELECT its_oid FROM pgc.its_namespace WHERE its_name = n)
pg_get_userbyid(o) AS 'nearly'
pg_table_is_visible(o) AS o IS NOT NULL
pg_type_is_visible(o) AS true
pg_function_is_visible(o) AS true
pg_collation_is_visible(a) AS true
pg_get_expr(a, b, c := false) AS NULL
pg_get_indexdef(a, b := 0, c := false) AS CASE WHEN coalesce(b, 0) = 0 \
    THEN (SELECT its_index FROM pgc.its_definition WHERE its_oid = a) \
    ELSE (SELECT its_name FROM pgc.its_key WHERE its_oid = a AND its_place = b) END
pg_get_constraintdef(a, b := false) AS (SELECT its_text FROM pgc.its_definition WHERE its_oid = a)
_pg_expandarray(a) AS unnest(list_zip(a, range(1, len(a) + 1))::STRUCT(x SMALLINT, n INTEGER)[])
pg_get_viewdef(a, b := false) AS (SELECT its_text FROM pgc.its_view WHERE its_oid = a)
pg_get_partkeydef(a) AS NULL
pg_get_ruledef(a, b := false) AS NULL
pg_get_triggerdef(a, b := false) AS NULL
pg_get_statisticsobjdef_columns(a) AS NULL
pg_get_function_identity_arguments(a) AS ''
pg_get_function_result(a) AS ''
pg_get_function_arguments(a) AS ''
pg_get_serial_sequence(a, b) AS NULL
pg_relation_is_publishable(a) AS false
obj_description(a, b := '') AS NULL
col_description(a, b) AS NULL
shobj_description(a, b) AS NULL
pg_relation_size(a, b := '') AS 0
pg_total_relation_size(a) AS 0
pg_table_size(a) AS 0
pg_indexes_size(a) AS 0
pg_database_size(a) AS 0
pg_size_pretty(a) AS CAST(a AS VARCHAR) || ' bytes'
pg_encoding_to_char(a) AS 'UTF8'
pg_client_encoding() AS 'UTF8'
pg_tablespace_location(a) AS ''
pg_is_in_recovery() AS false
pg_is_other_temp_schema(a) AS false
pg_my_temp_schema() AS 0
pg_postmaster_start_time() AS now()
pg_conf_load_time() AS now()
pg_stat_get_numscans(a) AS 0
pg_stat_get_tuples_inserted(a) AS 0
txid_current() AS 1
pg_sleep(a) AS NULL
inet_server_addr() AS NULL
has_table_privilege(a, b, c := '') AS true
has_schema_privilege(a, b, c := '') AS true
has_database_privilege(a, b, c := '') AS true
has_column_privilege(a, b, c, d := '') AS true
has_any_column_privilege(a, b, c := '') AS true
has_function_privilege(a, b, c := '') AS true
has_sequence_privilege(a, b, c := '') AS true
pg_has_role(a, b, c := '') AS true
row_security_active(a) AS false
to_regclass(n) AS name_oid(n)
to_regtype(n) AS type_oid(n)
quote_ident(n) AS n
array_lower(a, b) AS 1
array_upper(a, b) AS len(a)
pg_get_function_sqlbody(a) AS NULL
pg_get_functiondef(a) AS NULL
pg_get_statisticsobjdef(a) AS NULL
pg_char_to_encoding(a) AS 6
pg_tablespace_size(a) AS 0
pg_ts_config_is_visible(a) AS true
pg_operator_is_visible(a) AS true
pg_opclass_is_visible(a) AS true
pg_opfamily_is_visible(a) AS true
pg_conversion_is_visible(a) AS true
pg_statistics_obj_is_visible(a) AS true
array_remove(a, b) AS list_filter(a, lambda each: each <> b)
pg_get_keywords() AS TABLE SELECT keyword_name AS word, keyword_category[1] AS catcode, keyword_category AS catdesc \
    FROM duckdb_keywords()
generate_subscripts(a, b) AS unnest(range(1, len(a) + 1))
""".replace("\\\n", "").splitlines()
    if line.strip()
)
"""Functions that clients call in queries of the catalogue, in DuckDB's SQL."""

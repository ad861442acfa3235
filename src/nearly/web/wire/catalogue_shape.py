"""The tables and functions of Postgres' own catalogue that clients ask for, as DuckDB has them here.

`pgc` stands for pg_catalog and `isc` for information_schema: DuckDB has rooms of these names itself, with other content.
"""

from __future__ import annotations

PG, INFORMATION = "pgc", "isc"
NAMESPACES = {"pg_catalog": 11, "public": 2200, "information_schema": 13000}
OWNER, DATABASE_OID = 10, 16000
HEAP_OID, BTREE_OID, BTREE = 2, 403, "btree"

_PG: dict[str, str] = {
    "pg_namespace": "oid BIGINT, nspname VARCHAR, nspowner BIGINT, nspacl VARCHAR[]",
    "pg_class": (
        "oid BIGINT, relname VARCHAR, relnamespace BIGINT, reltype BIGINT, reloftype BIGINT, relowner BIGINT, relam BIGINT, "
        "relfilenode BIGINT, reltablespace BIGINT, relpages INTEGER, reltuples FLOAT, relallvisible INTEGER, reltoastrelid BIGINT, "
        "relhasindex BOOLEAN, relisshared BOOLEAN, relpersistence VARCHAR, relkind VARCHAR, relnatts SMALLINT, relchecks SMALLINT, "
        "relhasrules BOOLEAN, relhastriggers BOOLEAN, relhassubclass BOOLEAN, relrowsecurity BOOLEAN, relforcerowsecurity BOOLEAN, "
        "relispopulated BOOLEAN, relreplident VARCHAR, relispartition BOOLEAN, relrewrite BIGINT, relacl VARCHAR[], "
        "reloptions VARCHAR[], relpartbound VARCHAR, relhasoids BOOLEAN, xmin BIGINT"
    ),
    "pg_attribute": (
        "attrelid BIGINT, attname VARCHAR, atttypid BIGINT, attstattarget INTEGER, attlen SMALLINT, attnum SMALLINT, "
        "attndims INTEGER, atttypmod INTEGER, attbyval BOOLEAN, attstorage VARCHAR, attcompression VARCHAR, attnotnull BOOLEAN, "
        "atthasdef BOOLEAN, atthasmissing BOOLEAN, attidentity VARCHAR, attgenerated VARCHAR, attisdropped BOOLEAN, "
        "attislocal BOOLEAN, attinhcount INTEGER, attcollation BIGINT, attacl VARCHAR[], attoptions VARCHAR[], "
        "attfdwoptions VARCHAR[]"
    ),
    "pg_type": (
        "oid BIGINT, typname VARCHAR, typnamespace BIGINT, typowner BIGINT, typlen SMALLINT, typbyval BOOLEAN, typtype VARCHAR, "
        "typcategory VARCHAR, typispreferred BOOLEAN, typisdefined BOOLEAN, typdelim VARCHAR, typrelid BIGINT, typelem BIGINT, "
        "typarray BIGINT, typinput VARCHAR, typoutput VARCHAR, typreceive VARCHAR, typsend VARCHAR, typnotnull BOOLEAN, "
        "typbasetype BIGINT, typtypmod INTEGER, typndims INTEGER, typcollation BIGINT, typdefault VARCHAR, typsubscript VARCHAR"
    ),
    "pg_database": (
        "oid BIGINT, datname VARCHAR, datdba BIGINT, encoding INTEGER, datcollate VARCHAR, datctype VARCHAR, "
        "datistemplate BOOLEAN, datallowconn BOOLEAN, datconnlimit INTEGER, dattablespace BIGINT, datacl VARCHAR[], "
        "datlocprovider VARCHAR, daticulocale VARCHAR"
    ),
    "pg_roles": (
        "oid BIGINT, rolname VARCHAR, rolsuper BOOLEAN, rolinherit BOOLEAN, rolcreaterole BOOLEAN, rolcreatedb BOOLEAN, "
        "rolcanlogin BOOLEAN, rolreplication BOOLEAN, rolconnlimit INTEGER, rolvaliduntil VARCHAR, rolbypassrls BOOLEAN, "
        "rolconfig VARCHAR[]"
    ),
    "pg_user": "usename VARCHAR, usesysid BIGINT, usecreatedb BOOLEAN, usesuper BOOLEAN",
    "pg_am": "oid BIGINT, amname VARCHAR, amhandler VARCHAR, amtype VARCHAR",
    "pg_attrdef": "oid BIGINT, adrelid BIGINT, adnum SMALLINT, adbin VARCHAR",
    "pg_auth_members": "roleid BIGINT, member BIGINT, grantor BIGINT, admin_option BOOLEAN",
    "pg_authid": "oid BIGINT, rolname VARCHAR",
    "pg_cast": "oid BIGINT, castsource BIGINT, casttarget BIGINT, castfunc BIGINT, castcontext VARCHAR",
    "pg_collation": "oid BIGINT, collname VARCHAR, collnamespace BIGINT, collprovider VARCHAR, collisdeterministic BOOLEAN",
    "pg_constraint": (
        "oid BIGINT, conname VARCHAR, connamespace BIGINT, contype VARCHAR, condeferrable BOOLEAN, condeferred BOOLEAN, "
        "convalidated BOOLEAN, conrelid BIGINT, contypid BIGINT, conindid BIGINT, conparentid BIGINT, confrelid BIGINT, "
        "confupdtype VARCHAR, confdeltype VARCHAR, confmatchtype VARCHAR, conkey SMALLINT[], confkey SMALLINT[], "
        "conpfeqop BIGINT[], conbin VARCHAR, conislocal BOOLEAN, connoinherit BOOLEAN"
    ),
    "pg_depend": (
        "classid BIGINT, objid BIGINT, objsubid INTEGER, refclassid BIGINT, refobjid BIGINT, refobjsubid INTEGER, deptype VARCHAR"
    ),
    "pg_description": "objoid BIGINT, classoid BIGINT, objsubid INTEGER, description VARCHAR",
    "pg_enum": "oid BIGINT, enumtypid BIGINT, enumsortorder FLOAT, enumlabel VARCHAR",
    "pg_event_trigger": "oid BIGINT, evtname VARCHAR",
    "pg_extension": "oid BIGINT, extname VARCHAR, extowner BIGINT, extnamespace BIGINT, extrelocatable BOOLEAN, extversion VARCHAR",
    "pg_foreign_data_wrapper": "oid BIGINT, fdwname VARCHAR",
    "pg_foreign_server": "oid BIGINT, srvname VARCHAR, srvfdw BIGINT",
    "pg_foreign_table": "ftrelid BIGINT, ftserver BIGINT, ftoptions VARCHAR[]",
    "pg_index": (
        "indexrelid BIGINT, indrelid BIGINT, indnatts SMALLINT, indnkeyatts SMALLINT, indisunique BOOLEAN, "
        "indnullsnotdistinct BOOLEAN, indisprimary BOOLEAN, indisexclusion BOOLEAN, indimmediate BOOLEAN, indisclustered BOOLEAN, "
        "indisvalid BOOLEAN, indcheckxmin BOOLEAN, indisready BOOLEAN, indislive BOOLEAN, indisreplident BOOLEAN, "
        "indkey SMALLINT[], indcollation BIGINT[], indclass BIGINT[], indoption SMALLINT[], indexprs VARCHAR, indpred VARCHAR"
    ),
    "pg_indexes": "schemaname VARCHAR, tablename VARCHAR, indexname VARCHAR, tablespace VARCHAR, indexdef VARCHAR",
    "pg_inherits": "inhrelid BIGINT, inhparent BIGINT, inhseqno INTEGER, inhdetachpending BOOLEAN",
    "pg_language": "oid BIGINT, lanname VARCHAR",
    "pg_locks": "locktype VARCHAR, pid INTEGER, transactionid BIGINT, mode VARCHAR, granted BOOLEAN",
    "pg_matviews": "schemaname VARCHAR, matviewname VARCHAR, matviewowner VARCHAR, ispopulated BOOLEAN, definition VARCHAR",
    "pg_opclass": "oid BIGINT, opcname VARCHAR, opcmethod BIGINT, opcdefault BOOLEAN",
    "pg_operator": "oid BIGINT, oprname VARCHAR",
    "pg_partitioned_table": "partrelid BIGINT, partstrat VARCHAR, partattrs SMALLINT[]",
    "pg_policy": (
        "oid BIGINT, polname VARCHAR, polrelid BIGINT, polcmd VARCHAR, polpermissive BOOLEAN, polroles BIGINT[], polqual VARCHAR, "
        "polwithcheck VARCHAR"
    ),
    "pg_proc": (
        "oid BIGINT, proname VARCHAR, pronamespace BIGINT, proowner BIGINT, prolang BIGINT, prokind VARCHAR, proretset BOOLEAN, "
        "prorettype BIGINT, proargtypes BIGINT[], pronargs SMALLINT, proargnames VARCHAR[], proargmodes VARCHAR[], "
        "proallargtypes BIGINT[], prosrc VARCHAR, proisagg BOOLEAN, provolatile VARCHAR, proparallel VARCHAR, prosecdef BOOLEAN, "
        "proacl VARCHAR[], probin VARCHAR, prosqlbody VARCHAR, proisstrict BOOLEAN, proleakproof BOOLEAN"
    ),
    "pg_publication": "oid BIGINT, pubname VARCHAR, puballtables BOOLEAN",
    "pg_publication_namespace": "oid BIGINT, pnpubid BIGINT, pnnspid BIGINT",
    "pg_publication_rel": "oid BIGINT, prpubid BIGINT, prrelid BIGINT, prqual VARCHAR, prattrs SMALLINT[]",
    "pg_range": "rngtypid BIGINT, rngsubtype BIGINT, rngmultitypid BIGINT",
    "pg_rewrite": "oid BIGINT, rulename VARCHAR, ev_class BIGINT, ev_type VARCHAR, ev_enabled VARCHAR, is_instead BOOLEAN",
    "pg_sequence": (
        "seqrelid BIGINT, seqtypid BIGINT, seqstart BIGINT, seqincrement BIGINT, seqmax BIGINT, seqmin BIGINT, "
        "seqcache BIGINT, seqcycle BOOLEAN"
    ),
    "pg_sequences": "schemaname VARCHAR, sequencename VARCHAR",
    "pg_settings": "name VARCHAR, setting VARCHAR, unit VARCHAR, category VARCHAR, short_desc VARCHAR, source VARCHAR",
    "pg_shdescription": "objoid BIGINT, classoid BIGINT, description VARCHAR",
    "pg_stat_activity": (
        "datid BIGINT, datname VARCHAR, pid INTEGER, usename VARCHAR, application_name VARCHAR, state VARCHAR, query VARCHAR"
    ),
    "pg_stat_user_tables": (
        "relid BIGINT, schemaname VARCHAR, relname VARCHAR, n_live_tup BIGINT, n_dead_tup BIGINT, seq_scan BIGINT, idx_scan BIGINT"
    ),
    "pg_statistic_ext": (
        "oid BIGINT, stxname VARCHAR, stxrelid BIGINT, stxnamespace BIGINT, stxkeys SMALLINT[], stxkind VARCHAR[], "
        "stxstattarget INTEGER"
    ),
    "pg_tables": (
        "schemaname VARCHAR, tablename VARCHAR, tableowner VARCHAR, tablespace VARCHAR, hasindexes BOOLEAN, hasrules BOOLEAN, "
        "hastriggers BOOLEAN, rowsecurity BOOLEAN"
    ),
    "pg_tablespace": "oid BIGINT, spcname VARCHAR, spcowner BIGINT",
    "pg_timezone_names": "name VARCHAR, abbrev VARCHAR, utc_offset VARCHAR, is_dst BOOLEAN",
    "pg_trigger": (
        "oid BIGINT, tgrelid BIGINT, tgparentid BIGINT, tgname VARCHAR, tgenabled VARCHAR, tgisinternal BOOLEAN, tgtype SMALLINT, "
        "tgconstraint BIGINT, tgdeferrable BOOLEAN, tginitdeferred BOOLEAN, tgfoid BIGINT"
    ),
    "pg_views": "schemaname VARCHAR, viewname VARCHAR, viewowner VARCHAR, definition VARCHAR",
}
_INFORMATION: dict[str, str] = {
    "schemata": "catalog_name VARCHAR, schema_name VARCHAR, schema_owner VARCHAR, default_character_set_name VARCHAR",
    "tables": (
        "table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, table_type VARCHAR, is_insertable_into VARCHAR, "
        "is_typed VARCHAR, self_referencing_column_name VARCHAR, commit_action VARCHAR"
    ),
    "columns": (
        "table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, ordinal_position INTEGER, "
        "column_default VARCHAR, is_nullable VARCHAR, data_type VARCHAR, character_maximum_length INTEGER, "
        "character_octet_length INTEGER, numeric_precision INTEGER, numeric_precision_radix INTEGER, numeric_scale INTEGER, "
        "datetime_precision INTEGER, interval_type VARCHAR, collation_name VARCHAR, domain_name VARCHAR, udt_catalog VARCHAR, "
        "udt_schema VARCHAR, udt_name VARCHAR, is_identity VARCHAR, identity_generation VARCHAR, is_generated VARCHAR, "
        "generation_expression VARCHAR, is_updatable VARCHAR"
    ),
    "views": (
        "table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, view_definition VARCHAR, check_option VARCHAR, "
        "is_updatable VARCHAR"
    ),
    "table_constraints": (
        "constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, table_catalog VARCHAR, "
        "table_schema VARCHAR, table_name VARCHAR, constraint_type VARCHAR, is_deferrable VARCHAR, initially_deferred VARCHAR"
    ),
    "key_column_usage": (
        "constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, table_catalog VARCHAR, "
        "table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, ordinal_position INTEGER, "
        "position_in_unique_constraint INTEGER"
    ),
    "constraint_column_usage": (
        "table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, column_name VARCHAR, constraint_catalog VARCHAR, "
        "constraint_schema VARCHAR, constraint_name VARCHAR"
    ),
    "referential_constraints": (
        "constraint_catalog VARCHAR, constraint_schema VARCHAR, constraint_name VARCHAR, unique_constraint_schema VARCHAR, "
        "unique_constraint_name VARCHAR, match_option VARCHAR, update_rule VARCHAR, delete_rule VARCHAR"
    ),
    "routines": (
        "routine_catalog VARCHAR, routine_schema VARCHAR, routine_name VARCHAR, specific_name VARCHAR, routine_type VARCHAR, "
        "data_type VARCHAR"
    ),
    "parameters": "specific_name VARCHAR, ordinal_position INTEGER, parameter_name VARCHAR, data_type VARCHAR",
    "sequences": "sequence_catalog VARCHAR, sequence_schema VARCHAR, sequence_name VARCHAR, data_type VARCHAR",
    "triggers": "trigger_schema VARCHAR, trigger_name VARCHAR, event_object_schema VARCHAR, event_object_table VARCHAR",
    "table_privileges": (
        "grantor VARCHAR, grantee VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, "
        "privilege_type VARCHAR, is_grantable VARCHAR"
    ),
    "role_table_grants": (
        "grantor VARCHAR, grantee VARCHAR, table_catalog VARCHAR, table_schema VARCHAR, table_name VARCHAR, privilege_type VARCHAR"
    ),
    "enabled_roles": "role_name VARCHAR",
    "applicable_roles": "grantee VARCHAR, role_name VARCHAR, is_grantable VARCHAR",
    "character_sets": "character_set_name VARCHAR",
}
TABLES: dict[str, dict[str, str]] = {PG: _PG, INFORMATION: _INFORMATION}
"""Columns of each table, in DuckDB's spelling, by schema."""

MACROS: tuple[str, ...] = tuple(
    line.strip()
    for line in r"""
format_type(o, m) AS CASE WHEN o = 1700 AND m > 0 THEN 'numeric(' || (((m - 4) >> 16) & 65535) || ',' || ((m - 4) & 65535) || ')' \
    ELSE coalesce((SELECT sql_name FROM pgc.type_names WHERE type_names.oid = o), '???') END
oid_name(o) AS coalesce((SELECT relname FROM pgc.pg_class WHERE pg_class.oid = o), CAST(o AS VARCHAR))
name_oid(n) AS coalesce(try_cast(n AS BIGINT), (SELECT oid FROM pgc.pg_class WHERE relname = \
    replace(regexp_replace(n, '^(public|pg_catalog)\.', ''), '"', '')))
type_oid(n) AS coalesce(try_cast(n AS BIGINT), (SELECT oid FROM pgc.type_names WHERE n IN (sql_name, typname)))
namespace_name(o) AS coalesce((SELECT nspname FROM pgc.pg_namespace WHERE pg_namespace.oid = o), CAST(o AS VARCHAR))
namespace_oid(n) AS (SELECT oid FROM pgc.pg_namespace WHERE nspname = n)
pg_get_userbyid(o) AS 'nearly'
pg_table_is_visible(o) AS o IS NOT NULL
pg_type_is_visible(o) AS true
pg_function_is_visible(o) AS true
pg_collation_is_visible(a) AS true
pg_get_expr(a, b, c := false) AS NULL
pg_get_indexdef(a, b := 0, c := false) AS CASE WHEN coalesce(b, 0) = 0 \
    THEN (SELECT of_index FROM pgc.definitions WHERE definitions.oid = a) \
    ELSE (SELECT attname FROM pgc.pg_index JOIN pgc.pg_attribute ON attrelid = indrelid AND attnum = indkey[b] \
    WHERE indexrelid = a) END
pg_get_constraintdef(a, b := false) AS (SELECT of_key FROM pgc.definitions WHERE definitions.oid = a)
_pg_expandarray(a) AS unnest(list_zip(a, range(1, len(a) + 1))::STRUCT(x SMALLINT, n INTEGER)[])
pg_get_viewdef(a, b := false) AS (SELECT definition FROM pgc.pg_matviews WHERE matviewname = oid_name(a))
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
pg_get_keywords() AS TABLE SELECT keyword_name AS word, keyword_category[1] AS catcode, keyword_category AS catdesc \
    FROM duckdb_keywords()
generate_subscripts(a, b) AS unnest(range(1, len(a) + 1))
""".replace("\\\n", "").splitlines()
    if line.strip()
)
"""Functions that clients call in queries of the catalogue, in DuckDB's SQL."""

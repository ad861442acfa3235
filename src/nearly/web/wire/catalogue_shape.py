"""The tables of Postgres' own catalogue that clients ask for, as DuckDB has them here.

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
        "typbasetype BIGINT, typtypmod INTEGER, typndims INTEGER, typcollation BIGINT, typdefault VARCHAR, typsubscript VARCHAR, "
        "typacl VARCHAR[]"
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
    "pg_amop": (
        "oid BIGINT, amopfamily BIGINT, amoplefttype BIGINT, amoprighttype BIGINT, amopstrategy SMALLINT, amoppurpose VARCHAR, "
        "amopopr BIGINT, amopmethod BIGINT, amopsortfamily BIGINT"
    ),
    "pg_amproc": (
        "oid BIGINT, amprocfamily BIGINT, amproclefttype BIGINT, amprocrighttype BIGINT, amprocnum SMALLINT, amproc VARCHAR"
    ),
    "pg_attrdef": "oid BIGINT, adrelid BIGINT, adnum SMALLINT, adbin VARCHAR",
    "pg_auth_members": "roleid BIGINT, member BIGINT, grantor BIGINT, admin_option BOOLEAN",
    "pg_authid": "oid BIGINT, rolname VARCHAR",
    "pg_cast": "oid BIGINT, castsource BIGINT, casttarget BIGINT, castfunc BIGINT, castcontext VARCHAR, castmethod VARCHAR",
    "pg_collation": (
        "oid BIGINT, collname VARCHAR, collnamespace BIGINT, collowner BIGINT, collprovider VARCHAR, collisdeterministic BOOLEAN, "
        "collencoding INTEGER, collcollate VARCHAR, collctype VARCHAR, colliculocale VARCHAR, collicurules VARCHAR"
    ),
    "pg_constraint": (
        "oid BIGINT, conname VARCHAR, connamespace BIGINT, contype VARCHAR, condeferrable BOOLEAN, condeferred BOOLEAN, "
        "convalidated BOOLEAN, conrelid BIGINT, contypid BIGINT, conindid BIGINT, conparentid BIGINT, confrelid BIGINT, "
        "confupdtype VARCHAR, confdeltype VARCHAR, confmatchtype VARCHAR, conkey SMALLINT[], confkey SMALLINT[], "
        "conpfeqop BIGINT[], conbin VARCHAR, conislocal BOOLEAN, connoinherit BOOLEAN"
    ),
    "pg_conversion": (
        "oid BIGINT, conname VARCHAR, connamespace BIGINT, conowner BIGINT, conforencoding INTEGER, contoencoding INTEGER, "
        "conproc BIGINT, condefault BOOLEAN"
    ),
    "pg_depend": (
        "classid BIGINT, objid BIGINT, objsubid INTEGER, refclassid BIGINT, refobjid BIGINT, refobjsubid INTEGER, deptype VARCHAR"
    ),
    "pg_description": "objoid BIGINT, classoid BIGINT, objsubid INTEGER, description VARCHAR",
    "pg_enum": "oid BIGINT, enumtypid BIGINT, enumsortorder FLOAT, enumlabel VARCHAR",
    "pg_db_role_setting": "setdatabase BIGINT, setrole BIGINT, setconfig VARCHAR[]",
    "pg_default_acl": "oid BIGINT, defaclrole BIGINT, defaclnamespace BIGINT, defaclobjtype VARCHAR, defaclacl VARCHAR[]",
    "pg_event_trigger": (
        "oid BIGINT, evtname VARCHAR, evtevent VARCHAR, evtowner BIGINT, evtfoid BIGINT, evtenabled VARCHAR, evttags VARCHAR[]"
    ),
    "pg_extension": "oid BIGINT, extname VARCHAR, extowner BIGINT, extnamespace BIGINT, extrelocatable BOOLEAN, extversion VARCHAR",
    "pg_foreign_data_wrapper": (
        "oid BIGINT, fdwname VARCHAR, fdwowner BIGINT, fdwhandler BIGINT, fdwvalidator BIGINT, fdwacl VARCHAR[], "
        "fdwoptions VARCHAR[]"
    ),
    "pg_foreign_server": (
        "oid BIGINT, srvname VARCHAR, srvowner BIGINT, srvfdw BIGINT, srvtype VARCHAR, srvversion VARCHAR, srvacl VARCHAR[], "
        "srvoptions VARCHAR[]"
    ),
    "pg_foreign_table": "ftrelid BIGINT, ftserver BIGINT, ftoptions VARCHAR[]",
    "pg_index": (
        "indexrelid BIGINT, indrelid BIGINT, indnatts SMALLINT, indnkeyatts SMALLINT, indisunique BOOLEAN, "
        "indnullsnotdistinct BOOLEAN, indisprimary BOOLEAN, indisexclusion BOOLEAN, indimmediate BOOLEAN, indisclustered BOOLEAN, "
        "indisvalid BOOLEAN, indcheckxmin BOOLEAN, indisready BOOLEAN, indislive BOOLEAN, indisreplident BOOLEAN, "
        "indkey SMALLINT[], indcollation BIGINT[], indclass BIGINT[], indoption SMALLINT[], indexprs VARCHAR, indpred VARCHAR"
    ),
    "pg_indexes": "schemaname VARCHAR, tablename VARCHAR, indexname VARCHAR, tablespace VARCHAR, indexdef VARCHAR",
    "pg_inherits": "inhrelid BIGINT, inhparent BIGINT, inhseqno INTEGER, inhdetachpending BOOLEAN",
    "pg_language": (
        "oid BIGINT, lanname VARCHAR, lanowner BIGINT, lanispl BOOLEAN, lanpltrusted BOOLEAN, lanplcallfoid BIGINT, "
        "laninline BIGINT, lanvalidator BIGINT, lanacl VARCHAR[]"
    ),
    "pg_locks": "locktype VARCHAR, pid INTEGER, transactionid BIGINT, mode VARCHAR, granted BOOLEAN",
    "pg_matviews": "schemaname VARCHAR, matviewname VARCHAR, matviewowner VARCHAR, ispopulated BOOLEAN, definition VARCHAR",
    "pg_opclass": (
        "oid BIGINT, opcname VARCHAR, opcmethod BIGINT, opcnamespace BIGINT, opcowner BIGINT, opcfamily BIGINT, opcintype BIGINT, "
        "opckeytype BIGINT, opcdefault BOOLEAN"
    ),
    "pg_operator": (
        "oid BIGINT, oprname VARCHAR, oprnamespace BIGINT, oprowner BIGINT, oprkind VARCHAR, oprcanmerge BOOLEAN, "
        "oprcanhash BOOLEAN, oprleft BIGINT, oprright BIGINT, oprresult BIGINT, oprcom BIGINT, oprnegate BIGINT, oprcode BIGINT"
    ),
    "pg_opfamily": "oid BIGINT, opfmethod BIGINT, opfname VARCHAR, opfnamespace BIGINT, opfowner BIGINT",
    "pg_partitioned_table": "partrelid BIGINT, partstrat VARCHAR, partattrs SMALLINT[]",
    "pg_policy": (
        "oid BIGINT, polname VARCHAR, polrelid BIGINT, polcmd VARCHAR, polpermissive BOOLEAN, polroles BIGINT[], polqual VARCHAR, "
        "polwithcheck VARCHAR"
    ),
    "pg_proc": (
        "oid BIGINT, proname VARCHAR, pronamespace BIGINT, proowner BIGINT, prolang BIGINT, prokind VARCHAR, proretset BOOLEAN, "
        "prorettype BIGINT, proargtypes BIGINT[], pronargs SMALLINT, proargnames VARCHAR[], proargmodes VARCHAR[], "
        "proallargtypes BIGINT[], prosrc VARCHAR, proisagg BOOLEAN, provolatile VARCHAR, proparallel VARCHAR, prosecdef BOOLEAN, "
        "proacl VARCHAR[], probin VARCHAR, prosqlbody VARCHAR, proisstrict BOOLEAN, proleakproof BOOLEAN, "
        "proargdefaults VARCHAR, procost FLOAT, prorows FLOAT, prosupport VARCHAR, proconfig VARCHAR[], provariadic BIGINT"
    ),
    "pg_publication": (
        "oid BIGINT, pubname VARCHAR, pubowner BIGINT, puballtables BOOLEAN, pubinsert BOOLEAN, pubupdate BOOLEAN, "
        "pubdelete BOOLEAN, pubtruncate BOOLEAN, pubviaroot BOOLEAN"
    ),
    "pg_publication_namespace": "oid BIGINT, pnpubid BIGINT, pnnspid BIGINT",
    "pg_publication_rel": "oid BIGINT, prpubid BIGINT, prrelid BIGINT, prqual VARCHAR, prattrs SMALLINT[]",
    "pg_range": "rngtypid BIGINT, rngsubtype BIGINT, rngmultitypid BIGINT",
    "pg_rewrite": "oid BIGINT, rulename VARCHAR, ev_class BIGINT, ev_type VARCHAR, ev_enabled VARCHAR, is_instead BOOLEAN",
    "pg_sequence": (
        "seqrelid BIGINT, seqtypid BIGINT, seqstart BIGINT, seqincrement BIGINT, seqmax BIGINT, seqmin BIGINT, "
        "seqcache BIGINT, seqcycle BOOLEAN"
    ),
    "pg_sequences": "schemaname VARCHAR, sequencename VARCHAR",
    "pg_settings": "name VARCHAR, setting VARCHAR",
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
    "pg_subscription": (
        "oid BIGINT, subdbid BIGINT, subname VARCHAR, subowner BIGINT, subenabled BOOLEAN, subbinary BOOLEAN, substream VARCHAR, "
        "subtwophasestate VARCHAR, subdisableonerr BOOLEAN, suborigin VARCHAR, subpasswordrequired BOOLEAN, subrunasowner BOOLEAN, "
        "subsynccommit VARCHAR, subconninfo VARCHAR, subskiplsn VARCHAR, subslotname VARCHAR, subpublications VARCHAR[]"
    ),
    "pg_tables": (
        "schemaname VARCHAR, tablename VARCHAR, tableowner VARCHAR, tablespace VARCHAR, hasindexes BOOLEAN, hasrules BOOLEAN, "
        "hastriggers BOOLEAN, rowsecurity BOOLEAN"
    ),
    "pg_tablespace": "oid BIGINT, spcname VARCHAR, spcowner BIGINT, spcacl VARCHAR[], spcoptions VARCHAR[]",
    "pg_timezone_names": "name VARCHAR, abbrev VARCHAR, utc_offset VARCHAR, is_dst BOOLEAN",
    "pg_trigger": (
        "oid BIGINT, tgrelid BIGINT, tgparentid BIGINT, tgname VARCHAR, tgenabled VARCHAR, tgisinternal BOOLEAN, tgtype SMALLINT, "
        "tgconstraint BIGINT, tgdeferrable BOOLEAN, tginitdeferred BOOLEAN, tgfoid BIGINT"
    ),
    "pg_ts_config": "oid BIGINT, cfgname VARCHAR, cfgnamespace BIGINT, cfgowner BIGINT, cfgparser BIGINT",
    "pg_ts_dict": "oid BIGINT, dictname VARCHAR, dictnamespace BIGINT, dicttemplate BIGINT, dictinitoption VARCHAR",
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

-- databases: nearly
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datallowconn AND NOT datistemplate ORDER BY db.datname;

-- schemas: public
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass ORDER BY nspname;

-- types: int4
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C');

-- session: public
SELECT current_schema(),session_user;

-- search path: public
SELECT unnest(string_to_array(current_setting('search_path'), ', ')) AS path;

-- roles: nearly
SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a LEFT JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid ORDER BY a.rolname;

-- constraints: rides_pkey
SELECT c.oid,c.*,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description, case when c.contype='c' then
'"' || TRIM(pg_catalog.pg_get_constraintdef(c.oid)) || '"' else null end consrc_copy
FROM pg_catalog.pg_constraint c INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass
WHERE t.relnamespace = 2200 ORDER BY c.oid;

-- indexes: rides_pkey
SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,dsc.description,
pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr, pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,
pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size, pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid WHERE tc.relnamespace=2200 ORDER BY tabrelname, c.relname;

-- functions: -
SELECT p.oid, p.*, CASE WHEN p.prokind = 'a' THEN NULL ELSE pg_catalog.pg_get_expr(p.proargdefaults, 0) END as arg_defaults, d.description
FROM pg_catalog.pg_proc p LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=p.oid AND d.objsubid = 0
WHERE p.pronamespace=2200 ORDER BY p.proname;

-- sizes: rides
SELECT c.oid, c.relname, pg_catalog.pg_total_relation_size(c.oid) as total_rel_size, pg_catalog.pg_relation_size(c.oid) as rel_size
FROM pg_class c WHERE c.relnamespace=2200;

-- triggers: -
SELECT x.oid,x.*,p.pronamespace as func_schema_id,d.description FROM pg_catalog.pg_trigger x
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid=x.tgfoid LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=x.oid
WHERE x.tgrelid='rides'::regclass AND NOT x.tgisinternal;

-- inheritance: -
SELECT i.*,c.relnamespace FROM pg_catalog.pg_inherits i,pg_catalog.pg_class c WHERE i.inhrelid='rides'::regclass AND c.oid=i.inhparent
ORDER BY i.inhseqno;

-- dependencies: -
SELECT DISTINCT dep.deptype, dep.classid, dep.objid, cl.relkind, attr.attname, pg_get_expr(ad.adbin, ad.adrelid) adefval,
CASE WHEN cl.relkind IS NOT NULL THEN cl.relkind::text || COALESCE(dep.objsubid::text, '') ELSE '' END AS type,
COALESCE(coc.relname, clrw.relname) AS ownertable FROM pg_depend dep LEFT JOIN pg_class cl ON dep.objid=cl.oid
LEFT JOIN pg_attribute attr ON dep.objid=attr.attrelid AND dep.objsubid=attr.attnum LEFT JOIN pg_rewrite rw ON rw.oid=dep.objid
LEFT JOIN pg_class clrw ON clrw.oid=rw.ev_class LEFT JOIN pg_constraint co ON co.oid=dep.objid LEFT JOIN pg_class coc ON coc.oid=co.conrelid
LEFT JOIN pg_attrdef ad ON ad.oid=dep.objid WHERE dep.refobjid='rides'::regclass ORDER BY classid, cl.relkind;

-- definition of a view: by_city
SELECT c.relname, pg_catalog.pg_get_viewdef(c.oid, true) AS definition FROM pg_catalog.pg_class c WHERE c.relkind = 'm';

-- keywords: select
SELECT word FROM pg_catalog.pg_get_keywords() WHERE catcode = 'R' OR catcode = 'r';

-- settings: max_index_keys
SELECT * FROM pg_catalog.pg_settings WHERE name LIKE 'max%';

-- access methods: btree
SELECT am.oid, am.* FROM pg_catalog.pg_am am ORDER BY am.oid;

-- languages, encodings and spaces: pg_default
SELECT t.oid, t.*, pg_catalog.pg_tablespace_location(t.oid) loc FROM pg_catalog.pg_tablespace t ORDER BY t.oid;

-- extensions: -
SELECT e.oid, e.extname, e.extversion, n.nspname FROM pg_catalog.pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace;

-- prepared: -
SELECT pid, usename, datname, state, query FROM pg_catalog.pg_stat_activity WHERE pid = -1;

-- statistics: rides
SELECT relname, n_live_tup, seq_scan FROM pg_catalog.pg_stat_user_tables WHERE schemaname = 'public';

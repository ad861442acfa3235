import java.sql.*;

/** What a tool over JDBC asks of DatabaseMetaData: for each question a line with the number of rows and some of their values. */
public class Describe {
    interface Question { ResultSet ask() throws Exception; }

    static void tell(Connection connection, String name, Question question) {
        try (ResultSet rows = question.ask()) {
            int width = rows.getMetaData().getColumnCount(), count = 0;
            StringBuilder some = new StringBuilder();
            while (rows.next()) {
                for (int column = 1; column <= width && count < 20; column++) some.append("\t").append(rows.getString(column));
                count++;
            }
            System.out.println(name + "\t" + count + some);
            if (connection.getWarnings() != null) System.out.println("warning\t" + connection.getWarnings().getMessage());
            connection.clearWarnings();
        } catch (Exception trouble) {
            System.out.println("trouble\t" + name + "\t" + trouble.getMessage());
        }
    }

    public static void main(String[] given) throws Exception {
        try (Connection connection = DriverManager.getConnection(given[0], "nearly", given[1])) {
            DatabaseMetaData about = connection.getMetaData();
            String table = given[2];
            tell(connection, "tables", () -> about.getTables(null, null, "%", null));
            tell(connection, "columns", () -> about.getColumns(null, "public", table, "%"));
            tell(connection, "primary keys", () -> about.getPrimaryKeys(null, "public", table));
            tell(connection, "imported keys", () -> about.getImportedKeys(null, "public", table));
            tell(connection, "exported keys", () -> about.getExportedKeys(null, "public", table));
            tell(connection, "cross reference", () -> about.getCrossReference(null, "public", table, null, "public", table));
            tell(connection, "index info", () -> about.getIndexInfo(null, "public", table, false, false));
            tell(connection, "best row", () -> about.getBestRowIdentifier(null, "public", table, 0, true));
            tell(connection, "version columns", () -> about.getVersionColumns(null, "public", table));
            tell(connection, "types", () -> about.getTypeInfo());
            tell(connection, "own types", () -> about.getUDTs(null, null, "%", null));
            tell(connection, "schemas", () -> about.getSchemas());
            tell(connection, "catalogs", () -> about.getCatalogs());
            tell(connection, "table types", () -> about.getTableTypes());
            tell(connection, "functions", () -> about.getFunctions(null, null, "%"));
            tell(connection, "function columns", () -> about.getFunctionColumns(null, null, "%", "%"));
            tell(connection, "procedures", () -> about.getProcedures(null, null, "%"));
            tell(connection, "procedure columns", () -> about.getProcedureColumns(null, null, "%", "%"));
            tell(connection, "table privileges", () -> about.getTablePrivileges(null, "public", table));
            tell(connection, "column privileges", () -> about.getColumnPrivileges(null, "public", table, "%"));
            System.out.println("words\t" + about.getSQLKeywords());
            System.out.println("product\t" + about.getDatabaseProductVersion() + "\t" + about.getMaxColumnNameLength());
            System.out.println("connection\t" + connection.getSchema() + "\t" + connection.isValid(10));
            connection.setReadOnly(true);
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(7);
                ResultSet rows = statement.executeQuery("select id, name from people order by id");
                ResultSetMetaData columns = rows.getMetaData();
                int count = 0;
                while (rows.next()) count++;
                System.out.println("fetched\t" + count + "\t" + columns.getColumnTypeName(1) + "\t" + columns.isNullable(1));
            }
            connection.commit();
        }
    }
}

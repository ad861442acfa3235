import java.sql.*;
import java.nio.file.*;

public class Ask {
    public static void main(String[] given) throws Exception {
        try (Connection connection = DriverManager.getConnection(given[0], "nearly", given[1])) {
            DatabaseMetaData about = connection.getMetaData();
            try (ResultSet tables = about.getTables(null, "public", "%", new String[] {"TABLE"})) {
                while (tables.next()) System.out.println("table\t" + tables.getString("TABLE_NAME"));
            }
            try (ResultSet columns = about.getColumns(null, "public", "nation", "%")) {
                while (columns.next()) System.out.println("column\t" + columns.getString("COLUMN_NAME") + "\t" + columns.getString("TYPE_NAME"));
            }
            try (PreparedStatement asked = connection.prepareStatement("select n_name from nation where n_nationkey = ? and n_name <> ?")) {
                asked.setInt(1, 7);
                asked.setString(2, "x");
                try (ResultSet rows = asked.executeQuery()) {
                    while (rows.next()) System.out.println("asked\t" + rows.getString(1));
                }
            }
            try {
                connection.createStatement().executeQuery("select nothing from nation");
            } catch (SQLException trouble) {
                System.out.println("trouble\t" + trouble.getSQLState());
            }
            for (int place = 2; place < given.length; place++) {
                String text = new String(Files.readAllBytes(Paths.get(given[place])));
                try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(text)) {
                    int width = rows.getMetaData().getColumnCount();
                    while (rows.next()) {
                        StringBuilder row = new StringBuilder("row\t" + (place - 1));
                        for (int column = 1; column <= width; column++) row.append("\t").append(rows.getString(column));
                        System.out.println(row);
                    }
                }
            }
        }
    }
}

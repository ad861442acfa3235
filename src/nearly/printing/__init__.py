"""Values, bounds and tables as plain text: what every face of an answer shows, before colours and markup."""

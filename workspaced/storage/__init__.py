"""The service's database and file storage: one interface (`port`, `store`), for SQLite and PostgreSQL."""

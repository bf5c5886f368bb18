//! What is about SQLite alone, and is not run again on PostgreSQL.

mod many_people;

"""What libraries do, as data: one TOML file per library, a schema, and the loader."""

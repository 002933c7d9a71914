"""The project as a whole: its files, modules and imports, and which functions matter."""

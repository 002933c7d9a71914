"""Which findings are shown: selection, suppression comments, files that are left out."""

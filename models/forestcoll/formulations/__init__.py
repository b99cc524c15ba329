"""ForestColl's models: maximum flows of section 4.2, and linear program (6), the best all-reduce."""

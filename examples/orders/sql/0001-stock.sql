-- What is in stock: never less than nothing.
CREATE TABLE app_stock (
  sku    TEXT    PRIMARY KEY,
  amount INTEGER NOT NULL CHECK (amount >= 0)
) STRICT;

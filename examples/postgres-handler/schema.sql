-- What must not happen twice: one row for each occurrence, whoever writes it.
CREATE TABLE charge (
  key     text PRIMARY KEY,
  account text NOT NULL,
  cents   bigint NOT NULL
);

-- What the latest attempt says: one row for each account, and the fence of the attempt that wrote it.
CREATE TABLE statement (
  account text PRIMARY KEY,
  body    jsonb NOT NULL,
  fence   bigint NOT NULL
);

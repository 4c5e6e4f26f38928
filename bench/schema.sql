CREATE TABLE inbox (
  seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  source      text NOT NULL,
  account     text NOT NULL,
  id          text NOT NULL,
  type        text NOT NULL,
  state       text NOT NULL DEFAULT 'pending',
  received_at timestamptz NOT NULL DEFAULT now(),
  body        bytea NOT NULL,
  header      jsonb NOT NULL,
  UNIQUE (source, account, id)
);

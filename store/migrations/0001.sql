-- Times are integer milliseconds UTC, states are the words of package event,
-- and what may not be is refused by a CHECK or a UNIQUE rather than by code.
-- A CHECK of more than two words is an OR: SQLite builds a temporary table for a
-- longer IN list, for every row that is written (a quarter of an insert's cost).
-- An index ends in the row id by itself, and is in its order.
-- Random-order indexes cost a page of WAL for each row, so there is one for an
-- event and one for a delivery; the partial ones hold open work alone.

-- The inbox: one row for one event key, for ever.
CREATE TABLE event (
  seq          INTEGER PRIMARY KEY,          -- order of receipt; never reused, rows are not deleted
  source       TEXT    NOT NULL,
  account      TEXT    NOT NULL,             -- '' where the source has none
  id           TEXT    NOT NULL CHECK (length(CAST(id AS BLOB)) BETWEEN 1 AND 256),
  state        TEXT    NOT NULL CHECK (state = 'pending' OR state = 'claimed' OR state = 'done' OR state = 'ignored' OR state = 'dead' OR state = 'discarded'),
  run          INTEGER NOT NULL DEFAULT 1 CHECK (run >= 1),
  attempts     INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),   -- claims of this run
  alone        INTEGER NOT NULL DEFAULT 0 CHECK (alone IN (0,1)),  -- pending: has to be claimed alone; claimed: was
  revivable    INTEGER NOT NULL DEFAULT 0 CHECK (revivable IN (0,1)), -- died since its last redelivery or replay
  received_at  INTEGER NOT NULL,
  next_at      INTEGER,                      -- when it is due, while pending
  finished_at  INTEGER,
  claim        TEXT,                         -- boot.counter, while claimed
  type         TEXT    NOT NULL,
  object       TEXT    NOT NULL,
  version      TEXT    NOT NULL,
  part         TEXT    NOT NULL,             -- place of the event inside its request
  payload      INTEGER,                      -- payload.id; NULL where nothing is kept
  body_at      INTEGER NOT NULL DEFAULT 0,   -- in bytes: where the body stands in payload.data,
  body_size    INTEGER NOT NULL DEFAULT 0,   -- the header lines behind it, the raw query behind them
  header_size  INTEGER NOT NULL DEFAULT 0,
  query_size   INTEGER NOT NULL DEFAULT 0,
  content      BLOB    NOT NULL CHECK (length(content) = 16),
  error        TEXT    NOT NULL DEFAULT '',
  duplicates   INTEGER NOT NULL DEFAULT 0,
  duplicate_at INTEGER,
  conflicts    INTEGER NOT NULL DEFAULT 0,   -- other bodies that came under the same key
  incident     INTEGER,                      -- the incident that its death counts on
  origin       TEXT    NOT NULL DEFAULT '' CHECK (origin = '' OR origin = 'import' OR origin = 'reconcile'), -- '' is a webhook
  long_id      TEXT    NOT NULL DEFAULT '',  -- readable id, where id is a hash
  UNIQUE (source, account, id),              -- decides what is a duplicate; also whether a source has events
  CHECK ((state = 'pending') = (next_at IS NOT NULL)),
  CHECK ((state = 'claimed') = (claim IS NOT NULL)),
  CHECK ((state IN ('pending','claimed')) = (finished_at IS NULL)),
  CHECK (payload IS NOT NULL OR body_size = 0)
) STRICT;

-- What may be claimed, oldest due first. Work that was handed over in memory
-- with its receipt never enters it.
CREATE INDEX event_due ON event (next_at) WHERE state = 'pending';

-- All that is not done: lists and counts by state, the dead letters, and the
-- claims that a dead boot left behind.
CREATE INDEX event_open ON event (state) WHERE state <> 'done';

-- What requests carried, byte for byte: body, header lines and query of those
-- that were committed together, one behind the other, so that they fill their
-- pages; once for all events of a request, and apart from the rows that are
-- scanned. substr(data, body_at + 1, body_size) is the body of an event.
CREATE TABLE payload (
  id   INTEGER PRIMARY KEY,
  data BLOB NOT NULL
) STRICT;

-- The second key of sources whose event id is not signed. It is a row with a
-- time, not a UNIQUE: after the window the same body is news.
CREATE TABLE body_key (
  source  TEXT    NOT NULL,
  sum     BLOB    NOT NULL CHECK (length(sum) = 16), -- first half of the SHA-256 of the body
  seen_at INTEGER NOT NULL,    -- first seen: a repetition does not slide the window
  event   INTEGER NOT NULL,
  PRIMARY KEY (source, sum)
) STRICT, WITHOUT ROWID;

-- Other bodies under the key of an event, at most three kept of each.
CREATE TABLE conflict (
  event   INTEGER NOT NULL REFERENCES event (seq),
  n       INTEGER NOT NULL CHECK (n BETWEEN 1 AND 3),
  content BLOB    NOT NULL CHECK (length(content) = 16),
  seen    INTEGER NOT NULL DEFAULT 1,
  at      INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  part    TEXT    NOT NULL,
  body    BLOB    NOT NULL,
  header  TEXT    NOT NULL,
  query   TEXT    NOT NULL,
  PRIMARY KEY (event, n)
) STRICT;

-- What each run decided, for each rule.
CREATE TABLE verdict (
  event    INTEGER NOT NULL,
  run      INTEGER NOT NULL,
  rule     TEXT    NOT NULL,   -- '' where no rule came to speak
  decision TEXT    NOT NULL,
  reason   TEXT    NOT NULL,
  at       INTEGER NOT NULL,
  PRIMARY KEY (event, run, rule)
) STRICT, WITHOUT ROWID;

-- The outbox: one row for one business key and destination, for ever.
CREATE TABLE delivery (
  id          INTEGER PRIMARY KEY,
  event       INTEGER NOT NULL REFERENCES event (seq),
  rule        TEXT    NOT NULL,
  key         TEXT    NOT NULL CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 256), -- "=seq/rule" where it is its event's
  destination TEXT    NOT NULL,
  state       TEXT    NOT NULL CHECK (state = 'waiting' OR state = 'ready' OR state = 'sending' OR state = 'sent' OR state = 'dead' OR state = 'in_doubt' OR state = 'discarded'),
  run         INTEGER NOT NULL DEFAULT 1 CHECK (run >= 1),
  attempts    INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- of this run, as the retry policy counts them
  tries       INTEGER NOT NULL DEFAULT 0 CHECK (tries >= attempts), -- of this run, probes included
  probe       INTEGER NOT NULL DEFAULT 0 CHECK (probe IN (0,1)), -- the try in flight was not counted as an attempt
  status      INTEGER NOT NULL DEFAULT 0,   -- last HTTP status
  created_at  INTEGER NOT NULL,
  next_at     INTEGER,                      -- ready: when it is due; sending: when it was claimed
  finished_at INTEGER,
  claim       TEXT,                         -- boot.counter, while sending
  incident    INTEGER,                      -- the incident that its death counts on
  error       TEXT    NOT NULL DEFAULT '',
  long_key    TEXT    NOT NULL DEFAULT '',  -- readable key, where key is a hash
  UNIQUE (key, destination),                -- decides whether an operation is applied
  CHECK ((state IN ('ready','sending')) = (next_at IS NOT NULL)),
  CHECK ((state = 'sending') = (claim IS NOT NULL)),
  CHECK ((state = 'sent' OR state = 'dead' OR state = 'discarded') = (finished_at IS NOT NULL))
) STRICT;

-- What may be sent, by destination: a held one is never scanned.
CREATE INDEX delivery_due ON delivery (destination, next_at) WHERE state = 'ready';

-- All that is not sent: lists and counts by state, and the sends that were in
-- flight when a boot died.
CREATE INDEX delivery_open ON delivery (state) WHERE state <> 'sent';

-- The deliveries of an event, for its page and its replay; grows at its end.
CREATE INDEX delivery_event ON delivery (event);

-- Events with a dead delivery, newest first, for the dead letters.
CREATE INDEX delivery_dead ON delivery (event) WHERE state = 'dead';

-- Every try at a delivery; only ever inserted.
CREATE TABLE attempt (
  delivery INTEGER NOT NULL,
  run      INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  spent    INTEGER NOT NULL CHECK (spent IN (0,1)),
  start    INTEGER NOT NULL,
  duration INTEGER NOT NULL,                -- milliseconds
  status   INTEGER NOT NULL,
  outcome  TEXT    NOT NULL CHECK (outcome = 'ok' OR outcome = 'transient' OR outcome = 'permanent' OR outcome = 'unknown'),
  error    TEXT    NOT NULL,
  answer   TEXT    NOT NULL,
  PRIMARY KEY (delivery, run, number)
) STRICT, WITHOUT ROWID;

-- What is known about a destination; one without a row is enabled.
CREATE TABLE destination (
  name         TEXT    PRIMARY KEY,
  state        TEXT    NOT NULL CHECK (state = 'enabled' OR state = 'held' OR state = 'disabled' OR state = 'paused'),
  since        INTEGER NOT NULL,
  reason       TEXT    NOT NULL,
  probe_at     INTEGER,
  probe_delay  INTEGER NOT NULL,            -- milliseconds
  last_success INTEGER
) STRICT, WITHOUT ROWID;

-- Trouble with one alert.
CREATE TABLE incident (
  id              INTEGER PRIMARY KEY,
  cause           TEXT    NOT NULL,
  subject         TEXT    NOT NULL,
  detail          TEXT    NOT NULL,
  count           INTEGER NOT NULL DEFAULT 1,
  dead            INTEGER NOT NULL DEFAULT 0, -- dead letters counted on it that are still dead
  opened_at       INTEGER NOT NULL,
  last_at         INTEGER NOT NULL,
  notified_at     INTEGER,
  acknowledged_at INTEGER,
  resolved_at     INTEGER
) STRICT;

-- One open incident for a cause and subject, however many events it touches.
CREATE UNIQUE INDEX incident_open ON incident (cause, subject) WHERE resolved_at IS NULL;

-- The audit trail: every act of an operator.
CREATE TABLE action (
  id          INTEGER PRIMARY KEY,
  kind        TEXT    NOT NULL,
  actor       TEXT    NOT NULL,
  reason      TEXT    NOT NULL,
  selector    TEXT    NOT NULL,             -- JSON
  target      TEXT    NOT NULL,
  at          INTEGER NOT NULL,
  selected    INTEGER NOT NULL,
  done        INTEGER NOT NULL DEFAULT 0,
  refused     INTEGER NOT NULL DEFAULT 0,
  finished_at INTEGER,
  selection   BLOB,                         -- the frozen selection, while it runs
  CHECK (done + refused <= selected)
) STRICT;

-- The actions that a crash may have cut short.
CREATE INDEX action_running ON action (id) WHERE finished_at IS NULL;

CREATE TABLE action_item (
  action INTEGER NOT NULL REFERENCES action (id),
  n      INTEGER NOT NULL,
  event  INTEGER NOT NULL,
  result TEXT    NOT NULL,
  PRIMARY KEY (action, n)
) STRICT, WITHOUT ROWID;

-- The actions on an event, for its page.
CREATE INDEX action_item_event ON action_item (event, action);

-- How each source tells its events apart: a change would open dedupe again.
CREATE TABLE source_identity (
  source      TEXT    PRIMARY KEY,
  fingerprint TEXT    NOT NULL,
  at          INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

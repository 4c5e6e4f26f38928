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
  failure      INTEGER,                      -- while it is dead: failure.id
  origin       TEXT    NOT NULL DEFAULT '' CHECK (origin = '' OR origin = 'import' OR origin = 'reconcile'), -- '' is a webhook
  long_id      TEXT    NOT NULL DEFAULT '',  -- readable id, where id is a hash
  lane         TEXT    NOT NULL DEFAULT '',  -- the order that it keeps; '' for none
  rank         TEXT    NOT NULL DEFAULT '',  -- the version as a text that sorts; '' where there is none
  lane_skip    INTEGER NOT NULL DEFAULT 0,   -- a dead one lets those behind it pass
  waits        INTEGER NOT NULL DEFAULT 0,   -- pending, and not the head of its lane
  passes       INTEGER NOT NULL DEFAULT 0,   -- dead, and those behind it may pass
  parks        INTEGER NOT NULL DEFAULT 0,   -- dead, and others wait behind it: counted on an incident
  purged       INTEGER NOT NULL DEFAULT 0 CHECK (purged IN (0,1)), -- what it carried was taken away by age
  UNIQUE (source, account, id),              -- decides what is a duplicate; also whether a source has events
  CHECK ((state = 'pending') = (next_at IS NOT NULL)),
  CHECK ((state = 'claimed') = (claim IS NOT NULL)),
  CHECK ((state IN ('pending','claimed')) = (finished_at IS NULL)),
  CHECK (payload IS NOT NULL OR body_size = 0),
  CHECK (failure IS NULL OR state = 'dead'),
  CHECK (waits = 0 OR state = 'pending')
) STRICT;

-- What may be claimed, oldest due first. Work that was handed over in memory
-- with its receipt never enters it, and of a lane the head alone does.
CREATE INDEX event_due ON event (next_at) WHERE state = 'pending' AND waits = 0;

-- The open members of lanes: who is the head of one, and which are parked.
CREATE INDEX event_lane ON event (state, lane, waits, rank)
  WHERE lane <> '' AND passes = 0 AND state <> 'done' AND state <> 'ignored' AND state <> 'discarded';

-- All that is not done: lists and counts by state, the dead letters, and the
-- claims that a dead boot left behind.
CREATE INDEX event_open ON event (state) WHERE state <> 'done';

-- The events that came more than once, by when they last did.
CREATE INDEX event_duplicate ON event (duplicate_at) WHERE duplicate_at IS NOT NULL;

-- Events are found by what they are about without an index in its order, which
-- would cost each of them a page of WAL. A zone is 1,024 of them, one behind the
-- other; once it is full, two small rows say what is not in it, and whoever
-- searches walks through the others. Zone n holds the events from 1024 n + 1 on.
CREATE TABLE zone (
  zone     INTEGER NOT NULL,
  source   TEXT    NOT NULL,
  type     TEXT    NOT NULL,                 -- '*' where the source has many in this zone
  n        INTEGER NOT NULL,
  first_at INTEGER NOT NULL,                 -- earliest and latest receipt, which the clock may have put in any order
  last_at  INTEGER NOT NULL,
  PRIMARY KEY (zone, source, type)
) STRICT, WITHOUT ROWID;

-- A Bloom filter of the objects in a zone, of their beginnings, and of the
-- values in event_index.
CREATE TABLE zone_words (
  zone INTEGER PRIMARY KEY,
  bits BLOB    NOT NULL
) STRICT;

-- The values at places in the body that a source lists in its index, for those
-- sources alone; grows at its end.
CREATE TABLE event_index (
  event INTEGER NOT NULL,
  field TEXT    NOT NULL,
  value TEXT    NOT NULL CHECK (length(CAST(value AS BLOB)) <= 256),
  PRIMARY KEY (event, field, value)
) STRICT, WITHOUT ROWID;

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

-- The outbox: one row for one business key, destination and target, for ever.
CREATE TABLE delivery (
  id          INTEGER PRIMARY KEY,
  event       INTEGER REFERENCES event (seq), -- NULL: it is an alert, of the incident below
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
  incident    INTEGER,                      -- the incident that its death counts on; of an alert, the one that it tells of
  failure     INTEGER,                      -- while it is dead: failure.id; NULL for an alert
  error       TEXT    NOT NULL DEFAULT '',
  long_key    TEXT    NOT NULL DEFAULT '',  -- readable key, where key is a hash
  target      TEXT    NOT NULL DEFAULT '',  -- the recipient of a mail, the path of a file; '' for HTTP
  message     TEXT    NOT NULL DEFAULT '',  -- what was rendered when the event was applied, JSON
  lane        TEXT    NOT NULL DEFAULT '',  -- the order that it keeps at its destination and target; '' for none
  lane_skip   INTEGER NOT NULL DEFAULT 0,   -- one that is dead or in doubt lets those behind it pass
  passes      INTEGER NOT NULL DEFAULT 0,   -- those behind it may pass
  parks       INTEGER NOT NULL DEFAULT 0,   -- others wait behind it: counted on an incident
  queued_at   INTEGER NOT NULL DEFAULT 0,   -- since when it waits, where that is later than created_at: a replay
  UNIQUE (key, destination, target),        -- decides whether an operation is applied, and an incident told
  CHECK (event IS NOT NULL OR incident IS NOT NULL),
  CHECK (failure IS NULL OR state = 'dead'),
  CHECK ((state IN ('ready','sending')) = (next_at IS NOT NULL)),
  CHECK ((state = 'sending') = (claim IS NOT NULL)),
  CHECK ((state = 'sent' OR state = 'dead' OR state = 'discarded') = (finished_at IS NOT NULL))
) STRICT;

-- What may be sent, by destination: a held one is never scanned.
CREATE INDEX delivery_due ON delivery (destination, next_at) WHERE state = 'ready';

-- The open deliveries of lanes: which may be sent next, and which are parked.
CREATE INDEX delivery_lane ON delivery (state, lane, destination, target)
  WHERE lane <> '' AND passes = 0 AND state <> 'sent' AND state <> 'discarded';

-- All that is not sent: lists and counts by state, and the sends that were in
-- flight when a boot died.
CREATE INDEX delivery_open ON delivery (state) WHERE state <> 'sent';

-- The deliveries of an event, for its page and its replay; grows at its end.
CREATE INDEX delivery_event ON delivery (event);

-- Events with a dead delivery, newest first, for the dead letters.
CREATE INDEX delivery_dead ON delivery (event) WHERE state = 'dead';

-- What does not go on by itself and is no dead letter, by destination, for its
-- gauges: it is counted without a look at the rows.
CREATE INDEX delivery_stuck ON delivery (destination, state) WHERE state = 'in_doubt' OR state = 'waiting';

-- Dead letters --------------------------------------------------------------------

-- What dead letters have in common that failed alike: a group of them.
CREATE TABLE failure (
  id           INTEGER PRIMARY KEY,
  fingerprint  BLOB    NOT NULL UNIQUE CHECK (length(fingerprint) = 16), -- of the columns up to text
  kind         TEXT    NOT NULL CHECK (kind = 'event' OR kind = 'delivery'),
  source       TEXT    NOT NULL,
  destination  TEXT    NOT NULL,            -- '' for an event
  status_class INTEGER NOT NULL,            -- 4 for a 404; 0 where there was no such answer
  text         TEXT    NOT NULL,            -- the error without what differs from one to the next
  first_at     INTEGER NOT NULL,
  last_at      INTEGER NOT NULL,
  dead         INTEGER NOT NULL DEFAULT 0 CHECK (dead >= 0) -- rows that name it
) STRICT;

-- The groups in the orders in which they are listed.
CREATE INDEX failure_dead ON failure (dead) WHERE dead > 0;
CREATE INDEX failure_last ON failure (last_at) WHERE dead > 0;

-- How many died in each hour, for a day.
CREATE TABLE failure_hour (
  failure INTEGER NOT NULL,
  hour    INTEGER NOT NULL,                 -- since 1970
  n       INTEGER NOT NULL,
  PRIMARY KEY (failure, hour)
) STRICT, WITHOUT ROWID;

-- The dead letters, and those of one group, in the order of their deaths.
CREATE INDEX event_died ON event (finished_at) WHERE state = 'dead';
CREATE INDEX event_failure ON event (failure, finished_at) WHERE failure IS NOT NULL;
CREATE INDEX delivery_died ON delivery (finished_at) WHERE failure IS NOT NULL;
CREATE INDEX delivery_failure ON delivery (failure, finished_at) WHERE failure IS NOT NULL;

-- The count of a group is exact because nothing else writes it. The triggers
-- belong to statements that name the column: those of a death and of its end.
CREATE TRIGGER event_failure_counts AFTER UPDATE OF failure ON event WHEN OLD.failure IS NOT NEW.failure BEGIN
  UPDATE failure SET dead = dead - 1 WHERE id = OLD.failure;
  UPDATE failure SET dead = dead + 1 WHERE id = NEW.failure;
END;
CREATE TRIGGER delivery_failure_counts AFTER UPDATE OF failure ON delivery WHEN OLD.failure IS NOT NEW.failure BEGIN
  UPDATE failure SET dead = dead - 1 WHERE id = OLD.failure;
  UPDATE failure SET dead = dead + 1 WHERE id = NEW.failure;
END;

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
  last_success INTEGER,
  measured_from INTEGER                     -- attempts before it belong to trouble that is over
) STRICT, WITHOUT ROWID;

-- Trouble with one alert. What can follow from one outage is a family: the worst
-- of it is the cause.
CREATE TABLE incident (
  id              INTEGER PRIMARY KEY,
  family          TEXT    NOT NULL,
  cause           TEXT    NOT NULL,
  level           INTEGER NOT NULL,         -- of the cause within its family
  subject         TEXT    NOT NULL,
  detail          TEXT    NOT NULL,
  count           INTEGER NOT NULL DEFAULT 1,
  dead            INTEGER NOT NULL DEFAULT 0, -- dead letters counted on it that are still dead
  death           TEXT    NOT NULL DEFAULT '', -- of the latest of them, why
  heir            INTEGER,                  -- the incident that its dead letters went to when it ended
  down_since      INTEGER,                  -- its destination fails since then; NULL where it answers
  down_ms         INTEGER NOT NULL DEFAULT 0, -- for how long it was down before
  downs           INTEGER NOT NULL DEFAULT 0, -- and how often
  back_at         INTEGER,                  -- when it answered again, while it does
  opened_at       INTEGER NOT NULL,
  last_at         INTEGER NOT NULL,
  alerted_at      INTEGER,                  -- its alert was written; NULL where there is nobody to tell
  told_level      INTEGER NOT NULL DEFAULT 0, -- of what was told
  notified_at     INTEGER,                  -- the first recipient had it
  acknowledged_at INTEGER,
  acknowledged_by TEXT    NOT NULL DEFAULT '',
  resolved_at     INTEGER
) STRICT;

-- One open incident for a family and subject, however many events it touches.
CREATE UNIQUE INDEX incident_open ON incident (family, subject) WHERE resolved_at IS NULL;

-- What ended a short while ago, which may come back.
CREATE INDEX incident_over ON incident (family, subject, resolved_at) WHERE resolved_at IS NOT NULL;

-- What is learned of the pauses of a source: how often one of each length ended
-- on each of the last days.
CREATE TABLE rhythm (
  source  TEXT    PRIMARY KEY,
  since   INTEGER NOT NULL,                 -- listened to since then
  last_at INTEGER                           -- last receipt that is in its pauses
) STRICT, WITHOUT ROWID;

CREATE TABLE pause (
  source TEXT    NOT NULL,
  day    INTEGER NOT NULL,                  -- since 1970, UTC
  length INTEGER NOT NULL,                  -- place in a scale; 0 is no pause
  n      INTEGER NOT NULL CHECK (n > 0),
  PRIMARY KEY (source, day, length)
) STRICT, WITHOUT ROWID;

-- What providers list and the inbox does not have, by the last reconciliation.
CREATE TABLE gap (
  source     TEXT    PRIMARY KEY,
  at         INTEGER NOT NULL,
  missing    INTEGER NOT NULL CHECK (missing >= 0),
  from_at    INTEGER NOT NULL,
  until_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was counted by the minute, of sources and destinations, for an hour. The
-- newest minute of each stays: it tells when something last happened.
CREATE TABLE tally (
  kind    TEXT    NOT NULL,
  subject TEXT    NOT NULL,
  minute  INTEGER NOT NULL,                 -- since 1970
  n       INTEGER NOT NULL CHECK (n > 0),
  PRIMARY KEY (kind, subject, minute)
) STRICT, WITHOUT ROWID;

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
  resend      INTEGER NOT NULL DEFAULT 0 CHECK (resend IN (0,1)), -- what was sent is sent again too
  rate        REAL    NOT NULL DEFAULT 0 CHECK (rate >= 0), -- events a second at most; 0 is no limit
  once        BLOB    CHECK (length(once) = 16), -- hash of who asked, and of the key that he gave it
  once_what   BLOB    CHECK (length(once_what) = 16), -- hash of what he asked for
  CHECK (done + refused <= selected),
  CHECK ((once IS NULL) = (once_what IS NULL))
) STRICT;

-- What is asked for again under one key is one action.
CREATE UNIQUE INDEX action_once ON action (once) WHERE once IS NOT NULL;

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

-- Local effects ---------------------------------------------------------------
-- What rules did inside this file. key is a business key as in the outbox; the
-- constraint on it decides whether an operation is applied.

-- Rows of a kind that are inserted once.
CREATE TABLE record (
  id       INTEGER PRIMARY KEY,
  event    INTEGER NOT NULL REFERENCES event (seq),
  rule     TEXT    NOT NULL,
  kind     TEXT    NOT NULL CHECK (kind <> ''),
  key      TEXT    NOT NULL CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 256),
  fields   TEXT    NOT NULL,                -- JSON object of texts
  at       INTEGER NOT NULL,
  long_key TEXT    NOT NULL DEFAULT '',
  UNIQUE (key, kind)
) STRICT;

-- The records of an event, for its page; grows at its end.
CREATE INDEX record_event ON record (event);

-- The records of a kind, newest first; grows at the end of each kind.
CREATE INDEX record_kind ON record (kind);

-- The ledger: every change of a balance. 2^61 bounds amounts and balances, so
-- that no sum of two overflows. previous chains the rows of one balance, newest
-- first, so that they need no index in the order of their holders.
CREATE TABLE ledger (
  id       INTEGER PRIMARY KEY,
  event    INTEGER NOT NULL REFERENCES event (seq),
  rule     TEXT    NOT NULL,
  key      TEXT    NOT NULL UNIQUE CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 256),
  holder   TEXT    NOT NULL,
  unit     TEXT    NOT NULL,
  amount   INTEGER NOT NULL CHECK (amount <> 0 AND amount BETWEEN -2305843009213693952 AND 2305843009213693952),
  balance  INTEGER NOT NULL,                -- after it
  reverses INTEGER REFERENCES ledger (id),  -- the operation that it takes back
  previous INTEGER,                         -- the row of the same holder and unit before it
  at       INTEGER NOT NULL,
  long_key TEXT    NOT NULL DEFAULT '',
  CHECK ((reverses IS NULL) = (amount > 0))
) STRICT;

-- An operation is reversed once.
CREATE UNIQUE INDEX ledger_reverses ON ledger (reverses) WHERE reverses IS NOT NULL;

-- The ledger's rows of an event, for its page; grows at its end.
CREATE INDEX ledger_event ON ledger (event);

CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger BEGIN SELECT raise(ABORT, 'the ledger only grows: a correction is a reversal'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger BEGIN SELECT raise(ABORT, 'the ledger only grows: a correction is a reversal'); END;

-- What each holder has: the sum of its ledger rows, changed with them.
CREATE TABLE balance (
  holder TEXT    NOT NULL,
  unit   TEXT    NOT NULL,
  amount INTEGER NOT NULL CHECK (amount BETWEEN -2305843009213693952 AND 2305843009213693952),
  last   INTEGER NOT NULL,                  -- its newest ledger row
  at     INTEGER NOT NULL,
  PRIMARY KEY (holder, unit)
) STRICT, WITHOUT ROWID;

-- The current state of each object. version, rank and tie are of the event that
-- brought the highest version; '' where none has come.
CREATE TABLE state (
  object      TEXT    PRIMARY KEY CHECK (length(CAST(object AS BLOB)) BETWEEN 1 AND 256),
  state       TEXT    NOT NULL CHECK (state <> ''),
  fields      TEXT    NOT NULL,             -- JSON object of texts
  version     TEXT    NOT NULL,             -- as it came
  rank        TEXT    NOT NULL,             -- the version as a text that sorts
  tie         TEXT    NOT NULL,             -- key of its event: the greater one of two with one version stays
  transition  INTEGER NOT NULL,             -- the last one
  event       INTEGER NOT NULL REFERENCES event (seq), -- that it came from
  at          INTEGER NOT NULL,
  long_object TEXT    NOT NULL DEFAULT '',  -- readable object, where object is a hash
  CHECK ((version = '') = (rank = '') AND (rank = '') = (tie = ''))
) STRICT, WITHOUT ROWID;

-- How objects came to their states. previous chains those of one object, newest
-- first, so that they need no index in the order of their objects.
CREATE TABLE transition (
  id         INTEGER PRIMARY KEY,
  object     TEXT    NOT NULL,
  event      INTEGER NOT NULL REFERENCES event (seq),
  rule       TEXT    NOT NULL,
  key        TEXT    CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 256), -- of a compare-and-set; a version needs none
  from_state TEXT    NOT NULL,              -- '' for an object that had none
  state      TEXT    NOT NULL,
  version    TEXT    NOT NULL,
  fields     TEXT    NOT NULL,
  previous   INTEGER,
  at         INTEGER NOT NULL,
  long_key   TEXT    NOT NULL DEFAULT ''
) STRICT;

-- A compare-and-set is applied once.
CREATE UNIQUE INDEX transition_key ON transition (key) WHERE key IS NOT NULL;

-- The transitions of an event, for its page; grows at its end.
CREATE INDEX transition_event ON transition (event);

CREATE TRIGGER transition_no_update BEFORE UPDATE ON transition BEGIN SELECT raise(ABORT, 'what happened to an object is not changed'); END;
CREATE TRIGGER transition_no_delete BEFORE DELETE ON transition BEGIN SELECT raise(ABORT, 'what happened to an object is not changed'); END;

-- Views for apps that read the file: docs/operations.md lists their columns,
-- which stay. key is the text that a rule made, event the key of an event.
CREATE VIEW v_event AS SELECT seq,
  replace(replace(source, '%', '%25'), '/', '%2F') || '/' || replace(replace(account, '%', '%25'), '/', '%2F') || '/' ||
    replace(replace(id, '%', '%25'), '/', '%2F') AS key,
  source, account, CASE WHEN long_id <> '' THEN long_id ELSE id END AS id, type, object, version, state, error, run, attempts,
  duplicates, conflicts, CASE WHEN origin = '' THEN 'webhook' ELSE origin END AS origin, received_at, finished_at
  FROM event;

CREATE VIEW v_delivery AS SELECT delivery.id, delivery.event AS event_seq, v_event.key AS event, delivery.rule,
  CASE WHEN delivery.long_key <> '' THEN delivery.long_key WHEN substr(delivery.key, 1, 2) = '==' THEN substr(delivery.key, 2)
    WHEN substr(delivery.key, 1, 1) = '=' THEN v_event.key || substr(delivery.key, instr(delivery.key, '/')) ELSE delivery.key END AS key,
  delivery.destination, delivery.target, delivery.state, delivery.run, delivery.attempts, delivery.status, delivery.error,
  delivery.created_at, CASE WHEN delivery.state = 'ready' THEN delivery.next_at END AS next_at, delivery.finished_at
  FROM delivery JOIN v_event ON v_event.seq = delivery.event;

CREATE VIEW v_record AS SELECT record.id, record.event AS event_seq, v_event.key AS event, record.rule, record.kind,
  CASE WHEN record.long_key <> '' THEN record.long_key WHEN substr(record.key, 1, 2) = '==' THEN substr(record.key, 2)
    WHEN substr(record.key, 1, 1) = '=' THEN v_event.key || substr(record.key, instr(record.key, '/')) ELSE record.key END AS key,
  record.fields, record.at
  FROM record JOIN v_event ON v_event.seq = record.event;

CREATE VIEW v_balance AS SELECT holder, unit, amount, at FROM balance;

CREATE VIEW v_ledger AS SELECT ledger.id, ledger.event AS event_seq, v_event.key AS event, ledger.rule,
  CASE WHEN ledger.long_key <> '' THEN ledger.long_key WHEN substr(ledger.key, 1, 2) = '==' THEN substr(ledger.key, 2)
    WHEN substr(ledger.key, 1, 1) = '=' THEN v_event.key || substr(ledger.key, instr(ledger.key, '/')) ELSE ledger.key END AS key,
  ledger.holder, ledger.unit, ledger.amount, ledger.balance, ledger.reverses, ledger.at
  FROM ledger JOIN v_event ON v_event.seq = ledger.event;

CREATE VIEW v_state AS SELECT CASE WHEN long_object <> '' THEN long_object ELSE state.object END AS object, state.state, state.fields,
  state.version, state.event AS event_seq, v_event.key AS event, state.at
  FROM state JOIN v_event ON v_event.seq = state.event;

-- Statements of the owner's ---------------------------------------------------

-- What was done by statements of the owner's: once for a business key, with the
-- parameters that they had.
CREATE TABLE operation (
  id       INTEGER PRIMARY KEY,
  event    INTEGER NOT NULL REFERENCES event (seq),
  rule     TEXT    NOT NULL,
  key      TEXT    NOT NULL UNIQUE CHECK (length(CAST(key AS BLOB)) BETWEEN 1 AND 256),
  params   TEXT    NOT NULL,                -- JSON object of texts
  at       INTEGER NOT NULL,
  long_key TEXT    NOT NULL DEFAULT ''
) STRICT;

-- The operations of an event, for its page; grows at its end.
CREATE INDEX operation_event ON operation (event);

CREATE VIEW v_operation AS SELECT operation.id, operation.event AS event_seq, v_event.key AS event, operation.rule,
  CASE WHEN operation.long_key <> '' THEN operation.long_key WHEN substr(operation.key, 1, 2) = '==' THEN substr(operation.key, 2)
    WHEN substr(operation.key, 1, 1) = '=' THEN v_event.key || substr(operation.key, instr(operation.key, '/')) ELSE operation.key END AS key,
  operation.params, operation.at
  FROM operation JOIN v_event ON v_event.seq = operation.event;

-- The migrations of the owner's (app_ tables) that were applied, as they were.
CREATE TABLE own_migration (
  number   INTEGER PRIMARY KEY,
  name     TEXT    NOT NULL,                -- of the file
  checksum TEXT    NOT NULL,                -- SHA-256 of its text
  at       INTEGER NOT NULL
) STRICT;

-- What the server made up for itself and has to know again: the hash of the
-- page's first password, the key that signs the addresses of bodies.
CREATE TABLE setting (
  name  TEXT    PRIMARY KEY,
  value TEXT    NOT NULL,
  at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Who may use the API, by the hash of what he shows.
CREATE TABLE token (
  id         INTEGER PRIMARY KEY,
  name       TEXT    NOT NULL CHECK (name <> ''),
  hash       BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
  scope      TEXT    NOT NULL CHECK (scope = 'read' OR scope = 'operate'),
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;

-- Bodies that are older than they have to be kept, and needed: each is looked
-- at again when it is due.
CREATE TABLE kept_body (
  due     INTEGER NOT NULL,
  event   INTEGER NOT NULL REFERENCES event (seq),
  payload INTEGER NOT NULL,
  PRIMARY KEY (due, event)
) STRICT, WITHOUT ROWID;

-- Whether a row of bytes is named by another one.
CREATE INDEX kept_body_payload ON kept_body (payload);

-- Where the body of an event is named.
CREATE INDEX kept_body_event ON kept_body (event);

-- notebook.db: the notebook as one SQLite file. Times are RFC 3339 in UTC, lists are JSON, ids are those of the HTTP API.
-- No table is WITHOUT ROWID: ids are hashes, so that every row would be written somewhere else in the file; and many rows are long.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Every message of the stream as it came. Events of a deleted thread are gone but for its tombstone.
CREATE TABLE events (
    seq         INTEGER PRIMARY KEY, -- stream sequence
    original    INTEGER,             -- sequence in the stream where it was first stored, if it was restored since
    subject     TEXT NOT NULL,
    id          TEXT NOT NULL,       -- empty when the body is no event
    type        TEXT NOT NULL,
    time        TEXT,                -- when it was decided
    stored      TEXT NOT NULL,       -- when it was first stored, always nine decimals, so that text order is time order
    thread      TEXT NOT NULL,
    cause       TEXT NOT NULL,
    traceparent TEXT,
    problem     TEXT,                -- why it could not be applied
    unknown     INTEGER NOT NULL,    -- 1: only because this version does not know its type
    body        BLOB NOT NULL
);
CREATE INDEX events_thread ON events (thread, seq);
CREATE INDEX events_cause ON events (thread, cause) WHERE cause <> '';
CREATE INDEX events_problem ON events (seq) WHERE problem IS NOT NULL;

CREATE TABLE threads (
    id             TEXT NOT NULL PRIMARY KEY,
    deleted        INTEGER NOT NULL, -- 1: a tombstone, which keeps what the thread cost
    question       TEXT,
    title          TEXT,
    tags           TEXT,
    status         TEXT,
    reason_code    TEXT,
    reason_text    TEXT,
    archived       INTEGER,
    provider       TEXT,
    mode           TEXT,
    depth          INTEGER,
    batch          INTEGER,
    auto           INTEGER,
    engine         TEXT,
    replay         INTEGER,          -- null before the first run
    budget         INTEGER,          -- credits
    spent          INTEGER NOT NULL,
    reserved       INTEGER NOT NULL,
    dollars        REAL NOT NULL,
    answers        INTEGER,
    answer_budget  INTEGER,
    cycle          INTEGER,          -- the newest
    error_stage    TEXT,
    error_reason   TEXT,
    error_since    TEXT,
    created_at     TEXT,
    updated_at     TEXT,
    position       INTEGER NOT NULL  -- sequence of the thread's last message
);

CREATE TABLE runs (
    id                 TEXT NOT NULL PRIMARY KEY,
    thread             TEXT NOT NULL,
    question           TEXT NOT NULL, -- id
    text               TEXT NOT NULL, -- what was asked
    kind               TEXT NOT NULL,
    status             TEXT NOT NULL,
    provider           TEXT NOT NULL,
    mode               TEXT NOT NULL,
    depth              INTEGER NOT NULL,
    cycle              INTEGER NOT NULL,
    nocache            INTEGER NOT NULL,
    replayed           INTEGER NOT NULL,
    reserved           INTEGER NOT NULL, -- credits at its request
    cost               INTEGER,          -- credits at its end
    dollars            REAL,
    requested_at       TEXT NOT NULL,
    finished_at        TEXT,
    failure_code       TEXT,
    failure_detail     TEXT,
    failure_retryable  INTEGER,
    generation         INTEGER NOT NULL, -- of its outcomes
    open               INTEGER NOT NULL, -- 1: a stage of it has not ended
    distilled_at       TEXT,
    judged_at          TEXT,
    engine             TEXT,
    facts_left_out     INTEGER,
    unresolved_markers INTEGER,
    usage              TEXT,
    deleted            INTEGER NOT NULL,
    seq                INTEGER NOT NULL -- of its trigger
);
CREATE INDEX runs_thread ON runs (thread, seq);

CREATE TABLE attempts (
    run        TEXT NOT NULL,
    n          INTEGER NOT NULL,
    thread     TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at   TEXT,
    code       TEXT NOT NULL,
    detail     TEXT NOT NULL,
    retry_at   TEXT,
    PRIMARY KEY (run, n)
);
CREATE INDEX attempts_thread ON attempts (thread);

CREATE TABLE reports (
    run             TEXT NOT NULL PRIMARY KEY,
    thread          TEXT NOT NULL,
    markdown        TEXT, -- null until it was fetched
    ref             TEXT, -- its artifact, when it is not in the event
    sha256          TEXT,
    size            INTEGER,
    metadata        TEXT, -- of the provider; null when it is not in the event
    metadata_ref    TEXT,
    metadata_sha256 TEXT,
    metadata_size   INTEGER
);
CREATE INDEX reports_thread ON reports (thread);

CREATE TABLE pages (
    run           TEXT NOT NULL,
    n             INTEGER NOT NULL, -- number of its marker in the report
    thread        TEXT NOT NULL,
    source        TEXT NOT NULL,    -- empty when the URL is not one of the web
    url           TEXT NOT NULL,
    canonical_url TEXT NOT NULL,
    title         TEXT NOT NULL,
    summary       TEXT NOT NULL,
    published_at  TEXT,
    claims        TEXT, -- null until they were fetched
    claims_ref    TEXT,
    claims_sha256 TEXT,
    claims_size   INTEGER,
    seq           INTEGER NOT NULL, -- of run.completed
    PRIMARY KEY (run, n)
);
CREATE INDEX pages_source ON pages (thread, source, seq, n);

CREATE TABLE questions (
    id         TEXT NOT NULL PRIMARY KEY,
    thread     TEXT NOT NULL,
    text       TEXT NOT NULL,
    origin     TEXT NOT NULL,
    status     TEXT NOT NULL,
    score      REAL NOT NULL,
    depth      INTEGER NOT NULL,
    parent_run TEXT NOT NULL,
    rank       REAL NOT NULL, -- lower is asked earlier
    asked_at   TEXT NOT NULL,
    seq        INTEGER NOT NULL
);
CREATE INDEX questions_thread ON questions (thread, seq);

CREATE TABLE facts (
    id            TEXT NOT NULL PRIMARY KEY,
    thread        TEXT NOT NULL,
    run           TEXT NOT NULL, -- that added it
    statement     TEXT NOT NULL,
    fingerprint   TEXT NOT NULL,
    confidence    REAL NOT NULL,
    tags          TEXT NOT NULL,
    source        TEXT,
    url           TEXT,
    title         TEXT,
    published_at  TEXT,
    excerpt_start INTEGER,
    excerpt_end   INTEGER,
    excerpt       TEXT,
    duplicate_of  TEXT NOT NULL, -- empty when it stands for itself
    removed       INTEGER NOT NULL,
    dismissed     INTEGER NOT NULL,
    pinned        INTEGER NOT NULL,
    edited        INTEGER NOT NULL,
    engine        TEXT NOT NULL,
    replayed      INTEGER NOT NULL,
    created_at    TEXT NOT NULL,
    seq           INTEGER NOT NULL
);
CREATE INDEX facts_thread ON facts (thread, seq);

-- Where a statement was found: by its own run, and by every run that said the same.
CREATE TABLE support (
    fact          TEXT NOT NULL,
    run           TEXT NOT NULL,
    i             INTEGER NOT NULL,
    thread        TEXT NOT NULL,
    source        TEXT,
    url           TEXT,
    excerpt_start INTEGER,
    excerpt_end   INTEGER,
    excerpt       TEXT,
    PRIMARY KEY (fact, run, i)
);
CREATE INDEX support_run ON support (thread, run);

CREATE TABLE pairs (
    thread            TEXT NOT NULL,
    id                TEXT NOT NULL,
    elder             TEXT NOT NULL,
    elder_thread      TEXT NOT NULL, -- empty when it is this one
    elder_fingerprint TEXT NOT NULL,
    newer             TEXT NOT NULL,
    newer_fingerprint TEXT NOT NULL,
    relation          TEXT NOT NULL,
    related           INTEGER NOT NULL, -- 1: distinct, and yet of the same thing
    reason            TEXT NOT NULL,
    similarity        REAL NOT NULL,
    engine            TEXT NOT NULL,
    run               TEXT NOT NULL,
    judged_at         TEXT NOT NULL,
    seq               INTEGER NOT NULL,
    PRIMARY KEY (thread, id)
);

CREATE TABLE links (
    thread       TEXT NOT NULL,
    fact         TEXT NOT NULL,
    other        TEXT NOT NULL,
    other_thread TEXT NOT NULL,
    relation     TEXT NOT NULL,
    PRIMARY KEY (thread, fact, other, relation)
);
CREATE INDEX links_other ON links (other_thread, other);

CREATE TABLE briefs (
    thread            TEXT NOT NULL,
    cycle             INTEGER NOT NULL,
    closing           INTEGER NOT NULL,
    run_count         INTEGER NOT NULL,
    findings          TEXT NOT NULL,
    disputed          TEXT NOT NULL,
    gaps              TEXT NOT NULL,
    relationships     TEXT NOT NULL,
    withheld          TEXT NOT NULL,
    dropped_sentences INTEGER NOT NULL,
    markdown          TEXT NOT NULL,
    engine            TEXT NOT NULL,
    model             TEXT NOT NULL,
    created_at        TEXT NOT NULL,
    seq               INTEGER NOT NULL,
    PRIMARY KEY (thread, cycle, closing)
);

CREATE TABLE coverage (
    thread     TEXT NOT NULL,
    cycle      INTEGER NOT NULL,
    closing    INTEGER NOT NULL,
    topics     TEXT NOT NULL,
    engine     TEXT NOT NULL,
    model      TEXT NOT NULL,
    created_at TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    PRIMARY KEY (thread, cycle, closing)
);

CREATE VIEW active_facts AS
    SELECT * FROM facts WHERE duplicate_of = '' AND NOT removed AND NOT dismissed;

CREATE VIEW contradictions AS
    SELECT p.* FROM pairs p
    JOIN active_facts a ON a.id = p.elder AND a.fingerprint = p.elder_fingerprint
    JOIN active_facts b ON b.id = p.newer AND b.fingerprint = p.newer_fingerprint
    WHERE p.relation = 'contradiction' AND p.elder_thread = '';

-- A source is shown as it was first cited.
CREATE VIEW sources AS
    SELECT p.thread, p.source AS id, p.url, p.canonical_url, p.title, p.summary, p.published_at,
        (SELECT count(DISTINCT q.run) FROM pages q WHERE q.thread = p.thread AND q.source = p.source) AS cited_count
    FROM pages p
    WHERE p.source <> '' AND NOT EXISTS (
        SELECT 1 FROM pages q WHERE q.thread = p.thread AND q.source = p.source AND (q.seq, q.n) < (p.seq, p.n));

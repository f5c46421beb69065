#!/usr/bin/env node
// Prints the notebook's events as they are stored. It is an example: it needs nothing of Factstream but the read-only credentials.
//
//   npm install
//   node subscriber.js --data ../../data           everything from the start, then live
//   node subscriber.js --since 1h                  from an hour ago (or from a time: 2026-01-31T12:00:00Z)
//   node subscriber.js --new                       live only
//   node subscriber.js --thread ID                 one thread
//   node subscriber.js --cursor FILE               goes on where it stopped; the position is in the file
//   node subscriber.js --name ext-my-program       goes on where it stopped; the position is on the server
//   node subscriber.js --once                      ends when it has read what was stored so far
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { AckPolicy, DeliverPolicy, JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, nanos } from "@nats-io/transport-node";

const STREAM = "NOTEBOOK";
// The only subject on which the read-only user may listen.
const INBOX = "_INBOX_reader";
const CONSUMER_NOT_FOUND = 10014;

async function main() {
  const { values: options } = parseArgs({
    options: {
      data: { type: "string", default: process.env.FACTSTREAM_DATA || "data" },
      url: { type: "string" },
      credentials: { type: "string" },
      since: { type: "string" },
      new: { type: "boolean", default: false },
      thread: { type: "string" },
      cursor: { type: "string" },
      name: { type: "string" },
      once: { type: "boolean", default: false },
    },
  });
  if (options.cursor && options.name) throw new Error("give --cursor or --name, not both");

  const nc = await open(options);
  process.once("SIGINT", () => nc.close());
  try {
    await subscribe(nc, options);
  } finally {
    await nc.close();
  }
}

async function open({ data, url, credentials }) {
  const servers = url ?? (await address(data));
  const file = credentials ?? join(data, "credentials", "reader");
  const [user, pass] = (await readFile(file, "utf8")).trim().split(":");
  // The address of a notebook on several servers is theirs, separated by commas; this library wants a list.
  return connect({ servers: servers.split(","), user, pass, inboxPrefix: INBOX, maxReconnectAttempts: -1, name: "example subscriber" });
}

// The address is there as long as Factstream runs.
async function address(data) {
  try {
    return (await readFile(join(data, "address"), "utf8")).trim();
  } catch (error) {
    throw new Error(`no Factstream runs on ${data}: ${error.message}; start it (factstream up), or give --data or --url`);
  }
}

async function subscribe(nc, options) {
  // The account is not the reader's to ask about, so the library must not check it first.
  const manager = await jetstreamManager(nc, { checkAPI: false });
  const info = await manager.streams.info(STREAM);
  const position = await loadPosition(options.cursor, info);
  const consumer = await consume(nc, manager, options, position.sequence);
  const { num_pending: waiting, num_ack_pending: unacknowledged } = await consumer.info();
  if (options.once && waiting === 0 && unacknowledged === 0) return;

  const known = new Set(); // the same event may come again: after a crash between the two steps below, or after a restore
  for await (const message of await consumer.consume()) {
    const event = parse(message);
    if (event === null) {
      console.log(`${message.seq} not an event: ${message.subject}`);
    } else if (!event.id || !known.has(event.id)) {
      if (event.id) known.add(event.id); // events of others (ext.*) may have none
      console.log(`${message.seq} ${event.time} ${message.subject} ${event.type}`);
    }
    // First the work, then the position: what is lost in a crash between the two comes again.
    position.sequence = message.seq;
    if (options.name) {
      await message.ackAck();
    } else {
      await savePosition(options.cursor, position);
    }
    if (options.once && message.info.pending === 0) return;
  }
}

function parse(message) {
  try {
    return message.json();
  } catch {
    return null;
  }
}

// The consumer that the options ask for: an own, named one that the server remembers, or an ordered one, which the library makes again
// by itself after a failure and which needs no acknowledgements.
async function consume(nc, manager, options, after) {
  const js = jetstream(nc);
  const begin = start(options, after);
  // One filter, as a string. For a list of them this library asks in an older form, in which the request does not name the consumer,
  // and which a reader may not use.
  const filter = options.thread ? `*.*.${options.thread}.>` : undefined;
  if (!options.name) return js.consumers.get(STREAM, { ...begin, filter_subjects: filter });
  try {
    // Where to begin is said once: a consumer that is there keeps its position, and a change of its beginning is refused.
    await manager.consumers.info(STREAM, options.name);
  } catch (err) {
    if (!(err instanceof JetStreamApiError) || err.code !== CONSUMER_NOT_FOUND) throw err;
    await manager.consumers.add(STREAM, {
      ...begin,
      filter_subject: filter,
      durable_name: options.name,
      ack_policy: AckPolicy.Explicit,
      max_ack_pending: 1, // one at a time: else what was not acknowledged comes after what follows it
      inactive_threshold: nanos(30 * 24 * 60 * 60 * 1000), // the server forgets a program that has not come for a month
    });
  }
  return js.consumers.get(STREAM, options.name);
}

function start(options, after) {
  if (after > 0) return { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: after + 1 };
  if (options.new) return { deliver_policy: DeliverPolicy.New };
  if (options.since) return { deliver_policy: DeliverPolicy.StartTime, opt_start_time: moment(options.since).toISOString() };
  return { deliver_policy: DeliverPolicy.All };
}

function moment(since) {
  const ago = /^(\d+)([smhd])$/.exec(since);
  const at = ago ? new Date(Date.now() - ago[1] * { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[ago[2]]) : new Date(since);
  if (Number.isNaN(at.getTime())) throw new Error(`--since "${since}" is neither a time like 2026-01-31T12:00:00Z nor one like 90m`);
  return at;
}

// The position is the last event that was handled. It belongs to one stream: a notebook that was restored has another, with other
// sequences, and a position beyond a stream's end would wait for ever, so it is kept with the time at which the stream was made.
async function loadPosition(path, info) {
  const fresh = { created: info.created, sequence: 0 };
  if (!path) return fresh;
  const text = await readFile(path, "utf8").catch((err) => {
    if (err.code === "ENOENT") return null;
    throw err;
  });
  if (text === null) return fresh;
  const position = JSON.parse(text);
  if (position.created === info.created && position.sequence <= info.state.last_seq) return position;
  console.error("subscriber: the notebook is another one than last time: reading it from the start");
  return fresh;
}

// The file is replaced in one step, so that a crash leaves the old position or the new one.
async function savePosition(path, position) {
  if (!path) return;
  await writeFile(`${path}.part`, `${JSON.stringify(position)}\n`, { mode: 0o600 });
  await rename(`${path}.part`, path);
}

main().catch((err) => {
  console.error(`subscriber: ${err.message}`);
  process.exitCode = 1;
});

#!/usr/bin/env bash
# Reads a Factstream notebook with the `nats` command line (github.com/nats-io/natscli), as the read-only user.
#
#   read.sh all                  everything from the start
#   read.sh since 1h             from an hour ago
#   read.sh from 120             from a sequence
#   read.sh live                 what comes from now on
#   read.sh thread ID            one thread
#   read.sh resume NAME [COUNT]  the next COUNT (100) events after those that NAME (ext-...) has read; the server keeps the position
#   read.sh forget NAME          gives up that position
#
# All but the last two go on until Ctrl-C; with ONCE=1 they end when they have read what was stored so far.
#
# Each event is one line of JSON. DATA, or FACTSTREAM_DATA, is Factstream's data directory (./data), where the address and the credentials are; NATS_URL,
# NATS_USER and NATS_PASSWORD stand in for them.
set -euo pipefail

command -v nats >/dev/null || { echo "read.sh: the nats command line (natscli) is missing; see https://github.com/nats-io/natscli" >&2; exit 1; }
data=${DATA:-${FACTSTREAM_DATA:-data}}
if [[ -z ${NATS_URL-} && ! -r $data/address ]]; then # it is there as long as Factstream runs
  echo "read.sh: no Factstream runs on $data: there is no $data/address; start it (factstream up), or set FACTSTREAM_DATA or NATS_URL" >&2
  exit 1
fi
# In variables, since all users of a machine can read a program's arguments.
export NATS_URL=${NATS_URL:-$(<"$data/address")}
export NATS_USER=${NATS_USER:-$(cut -d : -f 1 "$data/credentials/reader")}
export NATS_PASSWORD=${NATS_PASSWORD:-$(cut -d : -f 2 "$data/credentials/reader")}

# The inbox is the only subject on which the read-only user may listen.
nats() { command nats --no-context --inbox-prefix=_INBOX_reader "$@"; }
events() { nats subscribe --stream NOTEBOOK --raw ${ONCE:+--terminate-at-end --wait 2s} "$@"; }
usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }

# durable makes a consumer of one's own. One event at a time is out, so that one that was not acknowledged comes before what follows.
durable() {
  nats consumer info NOTEBOOK "$1" >/dev/null 2>&1 ||
    nats consumer add NOTEBOOK "$1" --pull --deliver all --ack explicit --max-pending 1 --inactive-threshold 720h --replay instant --defaults >/dev/null
}

case ${1-} in
  all)    events --all '>' ;;
  since)  events --since "${2:?"how long ago? 1h, 30m"}" '>' ;;
  from)   events --start-sequence "${2:?"from which sequence?"}" '>' ;;
  live)   events --new '>' ;;
  thread) events --all "*.*.${2:?"which thread?"}.>" ;;
  resume)
    durable "${2:?"under which name?"}"
    # It ends without an error after COUNT events; when there are fewer, the wait for the next one times out, which is no failure here.
    nats consumer next NOTEBOOK "$2" --raw --count "${3:-100}" --timeout 2s 2>/dev/null || true
    ;;
  forget) nats consumer rm NOTEBOOK "${2:?"which name?"}" --force ;;
  *) usage ;;
esac

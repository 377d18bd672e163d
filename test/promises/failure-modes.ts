/** Each event of docs/failure-modes.md and the tests that hold us to it: `path › title`, where a title of `it.each` is its template. */
export const FAILURE_MODES: Readonly<Record<string, readonly string[]>> = {
  "The process is killed": [
    "test/faults/agents-kill.test.ts › a hundred kills under load lose nothing that was told and leave nothing half done",
    "test/faults/webhooks-kill.test.ts › kill -9 at full speed loses no acknowledged delivery and runs none twice",
    "test/faults/mixed-kill.test.ts › keeps every promise over ten kills at random moments in the middle of everything",
    "packages/signalbox/src/engines/instance-store/journal/next-segment.test.ts › something that is written at once while the next file is being made goes into that file",
  ],
  "The power fails": [
    "test/faults/agents-power-cut.test.ts › everything that was told is there afterwards, and nothing is half done",
    "test/faults/webhooks-power-cut.test.ts › entities whose first event was acknowledged are there after a power cut",
  ],
  "Instances have due work when the process starts again": [
    "test/faults/agents-waking.test.ts › all of it is done, each once, though nobody asks",
    "test/conformance/agents-on-postgres.test.ts › keep former instances and names in the account default, and wake all that are due",
  ],
  "Logs of a killed process are left in the data folder": [
    "packages/signalbox/src/engines/instance-store/log-files.test.ts › are not used, and gone after a while",
    "packages/signalbox/src/engines/instance-store/log-files.test.ts › hold up no start, and a log that is in use by then is not taken away",
  ],
  "The server is stopped": [
    "test/conformance/running-it.test.ts › lets a running request finish while new connections are refused",
    "test/conformance/running-it.test.ts › cuts what has not finished when the grace period is over",
    "test/conformance/agents-hooks.test.ts › sends clients away with a code that invites them back, and finishes turns that run",
    "test/faults/call-log.test.ts › loses no stored call when the server is told to stop right after the last response",
  ],
  "An agent's code throws where no turn catches it": [
    "test/faults/uncaught-errors.test.ts › goes on serving everybody after an agent's errors of every kind, and counts them",
    "test/faults/uncaught-errors.test.ts › writes few lines about a flood",
  ],
  "The server's own code lets an exception escape": [
    "test/faults/uncaught-errors.test.ts › stops in order, and not with success, when its own code was interrupted",
  ],
  "The log cannot be written": [
    "test/faults/uncaught-errors.test.ts › goes on when nobody reads its log any more",
    "test/faults/lost-log.test.ts › serves, and ends in order, when not one line can be written",
    "test/faults/lost-log.test.ts › serves while the disk of its log is full, and writes lines again when there is room",
  ],
  "The process is killed in the middle of migrations": [
    "test/faults/migrations-killed.test.ts › starts from the beginning on SQLite, after whichever statement it was killed",
    "test/faults/migrations-killed.test.ts › starts from the beginning on PostgreSQL, too",
  ],
  "A second process is started": [
    "test/faults/refused-process.test.ts › is refused the data folder of another one, whose files stay as they are",
    "test/faults/refused-process.test.ts › is refused the database of another one, and has made itself no token",
  ],
  "A queue item or schedule was running": [
    "test/conformance/agents-work.test.ts › an item that kills the process runs out of attempts and is buried",
  ],
  "A queue item fails every time": [
    "test/conformance/agents-work.test.ts › buries an item after its attempts and goes on; a dead letter can be replayed",
    "test/conformance/agents-work.test.ts › tries again what failed, without holding up what follows",
  ],
  "A schedule was missed": [
    "test/conformance/agents-work.test.ts › schedules made in onStart do not multiply, missed ones run once, and the queue goes on",
  ],
  "A turn throws": [
    "test/conformance/agents-calls.test.ts › that throws at once leaves no trace",
    "test/conformance/agents-calls.test.ts › that throws after really waiting keeps what it wrote before the wait",
    "test/conformance/agents-calls.test.ts › that make the agent throw are answered 500 without detail",
    "test/conformance/agents-live.test.ts › announced by a turn that then fails is never sent",
  ],
  "A turn never ends": [
    "test/conformance/agents-calls.test.ts › that never ends is cut by its limit, and the next one runs",
    "test/conformance/agents-calls.test.ts › that was cut cannot write any more",
  ],
  "`onStart` throws": [
    "test/conformance/agents-instances.test.ts › that fails to start tells everybody who waits, and is tried again by the next",
  ],
  "An instance cannot start": [
    "test/faults/agents-waking.test.ts › instances that cannot start are tried seldom, and keep their work",
    "packages/signalbox/src/agents/instance/waker.test.ts › leaves an instance that fails alone for longer and longer, and the others do not wait for it",
  ],
  "An instance's file is damaged": [
    "test/faults/agents-damaged-file.test.ts › answers calls of a damaged instance with an internal error, and those of others as ever",
    "test/faults/agents-damaged-file.test.ts › is left alone for a while after a failure, whichever page is damaged",
  ],
  "An instance's file was written by a newer version": [
    "packages/signalbox/src/engines/instance-store/instance-files.test.ts › of a newer version is refused and not touched",
  ],
  "The journal is damaged": [
    "packages/signalbox/src/engines/instance-store/journal/journal.test.ts › is refused when a file that is not its newest is damaged",
    "packages/signalbox/src/engines/instance-store/journal/journal.test.ts › forgets what nobody was told of: half a record, and an instance without a commit",
  ],
  "A sync fails": [
    "packages/signalbox/src/engines/sqlite-file/wal-sync.test.ts › fails everything that waits when a sync fails, never tries again, and reports it once",
    "packages/signalbox/src/engines/turn-runtime/output-gate.test.ts › lets nothing out after a failed sync, ever",
  ],
  "The process dies while an instance is destroyed": [
    "packages/signalbox/src/engines/instance-store/journal/journal.test.ts › does not bring back what was destroyed, nor mix it with its successor",
    "packages/signalbox/src/agents/instance/catalog-presence.test.ts › one whose database is gone has no work, whatever the catalog says",
  ],
  "An instance gets events faster than it handles them": [
    "test/conformance/agents-instances.test.ts › of one instance is answered 503 with Retry-After, and passes",
  ],
  "All instances in memory are busy": [
    "test/conformance/agents-instances.test.ts › refuses new instances rather than opening too many when all are busy",
  ],
  "Thousands of sockets close at once": [
    "test/conformance/agents-departures.test.ts › open no database when their agent has no onClose",
    "test/conformance/agents-departures.test.ts › all run onClose when it has one, however few instances fit in memory",
    "packages/signalbox/src/agents/connections/departures.test.ts › closed connections wait a minute for an instance that can be opened, then they are counted and logged",
  ],
  "The server stops while instances sleep": [
    "test/conformance/agents-departures.test.ts › says how many onClose it could not run",
  ],
  "An agent refuses an event": [
    "test/conformance/webhook-refusals.test.ts › refuses an event with RejectEvent: 400 with the message, nothing is written, and it can come again",
    "test/conformance/webhook-refusals.test.ts › refuses an event with a response of its own, which the sender gets",
    "test/conformance/webhook-refusals.test.ts › what an agent refused is in the inspector as that, and not among its events",
  ],
  "An agent's module does not load": [
    "test/conformance/agents-instances.test.ts › that are broken stop the start with one line that names them",
  ],
  "A class was removed": [
    "test/faults/agents-waking.test.ts › work of a class that is not loaded waits, and is done when the class is back",
    "test/conformance/agents-calls.test.ts › to an unknown agent, or without an instance, are 404",
  ],
  "A method that work names was removed": [
    "test/conformance/agents-modules.test.ts › work for a method that the class no longer has becomes a dead letter",
  ],
  "Storage fails under a subscription to tags": [
    "packages/signalbox/src/agents/subscriptions/tag-subscriptions.test.ts › go on after errors of storage, wherever they happen, and report them",
    "packages/signalbox/src/agents/subscriptions/tag-subscriptions.test.ts › deliver again what they could not write down, for the ledger to recognise",
  ],
  "A provider breaks off in the middle": [
    "test/conformance/gateway-streaming.test.ts › ends the client's response detectably when the provider breaks off",
  ],
  "A provider cannot be reached, or sends something that is not HTTP": [
    "test/conformance/gateway-streaming.test.ts › answers 502 and code 2005 when the provider cannot be reached or hangs up",
    "test/conformance/gateway-bad-input.test.ts › and %s: 502 and code 2005",
  ],
  "A provider does not answer in time": [
    "test/conformance/gateway-streaming.test.ts › times a provider out that never answers with 504 and code 2004",
    "test/conformance/gateway-retries.test.ts › goes on to the next step when one %s",
  ],
  "A provider closes a kept connection under a POST": [
    "test/hostile/gateway-provider-answers.test.ts › a POST under which a kept connection dies is not sent twice: the caller gets a 502 and decides",
    "test/hostile/gateway-provider-answers.test.ts › with %s it is sent again",
  ],
  "Uploads fill the memory budget": [
    "test/hostile/gateway-memory.test.ts › refuses bodies beyond the budget with 503 and Retry-After, while callers hold on to theirs",
    "test/hostile/gateway-memory.test.ts › lets small calls in when the budget is full of bodies that stand still",
    "test/hostile/gateway-memory.test.ts › cuts bodies that do not progress with 408 and takes their memory back",
  ],
  "The process is killed with calls that are not stored": [
    "test/faults/call-log.test.ts › keeps what was written when the process is killed, and of the rest whole rows or nothing",
    "packages/signalbox/src/engines/call-log/sqlite-call-log.test.ts › writes rows after the flush interval without a read",
  ],
  "The thread that writes the call log dies": [
    "packages/signalbox/src/engines/call-log/sqlite-call-log.test.ts › neither loses nor duplicates rows when the writer's thread dies",
  ],
  "Stored calls reach `gateway.logs.maxTotalBytes`": [
    "test/hostile/call-log-size.test.ts › removes the oldest bodies and keeps rows and figures, over a restart",
    "packages/signalbox/src/engines/call-log/size-limit.test.ts › removes the oldest rows when no body is left, and keeps the usage",
  ],
  "Spend sums cannot be written": [
    "packages/signalbox/src/gateway/limits/spend-limits.test.ts › keeps what it could not write and writes it when it can, with what came meanwhile",
    "packages/signalbox/src/gateway/limits/spend-limits.test.ts › reports a failing write of its timer and does not leave a rejection behind",
  ],
  "The process is killed while a gateway is deleted": [
    "test/faults/gateway-deletion.test.ts › has nothing of a gateway left after `kill -9` in the middle of its deletion",
    "packages/signalbox/src/gateway/settings/gateway-deletions.test.ts › finishes at the next start what failed in between, before the name can be used",
    "packages/signalbox/src/gateway/settings/gateway-deletions.test.ts › does not create a gateway over one that is not removed whole",
  ],
  "The encryption key is another one": [
    "test/hostile/provider-secret-headers.test.ts › names the provider whose headers another key has sealed, refuses calls to it, and serves the rest",
  ],
  "An instance is slow": [
    "test/conformance/webhook-late.test.ts › six deliveries behind a slow handler are answered 202 while it still runs, and each is handled once",
    "test/conformance/webhook-late.test.ts › others are not held up by it, and quick ones are answered as ever",
    "packages/signalbox/src/webhooks/intake-in-time.test.ts › whose delivery cannot be stored in time is answered 503 when its time is up, and what was stored is taken back",
  ],
  "The process is killed after a 202": [
    "test/faults/webhooks-late-kill.test.ts › kill -9 after a 202 loses no delivery and keeps none twice",
  ],
  "A handler fails after a 202": [
    "packages/signalbox/src/webhooks/late-deliveries.test.ts › one that fails is tried again after growing pauses, given up at the eighth failure, and can be tried anew",
    "test/conformance/webhook-late.test.ts › the list of accepted deliveries is the account's own, and only those that were given up can be replayed or dropped",
  ],
  "A handler fails before an answer": [
    "test/conformance/webhook-agent.test.ts › that fails (%s) answers 500 without a word about why, and counts nothing",
    "test/conformance/webhook-agent.test.ts › that failed runs again on the provider's retry, and then once",
  ],
  "Too many deliveries come at once": [
    "test/conformance/webhook-overload.test.ts › answers 503 with Retry-After while too much is at work, and takes deliveries again afterwards",
  ],
  "A delivery comes twice": [
    "test/conformance/webhook-agent.test.ts › 50 concurrent copies of one delivery run once",
    "test/conformance/webhook-agent.test.ts › has everything again after a restart, and recognises what it had before",
  ],
  "The inspector's list cannot be written": [
    "packages/signalbox/src/webhooks/webhook-storage.test.ts › what a failing database cannot take waits, is listed from memory, and is written when it works again",
  ],
  "A new entity's name cannot be claimed": [
    "packages/signalbox/src/webhooks/entity-claims.test.ts › a claim that cannot be written asks its sender to come back, and can be made then",
  ],
  "The process is killed while tags are written": [
    "test/faults/tags-killed.test.ts › loses no acknowledged write and mixes no two",
  ],
  "Two writers change one resource": [
    "test/conformance/tags-writing.test.ts › let exactly one of many concurrent writers through, and readers see whole sets only",
  ],
  "A reader of the change feed comes too late": [
    "test/conformance/tags-beyond.test.ts › tells a reader who comes too late, with 410 and code 1018",
  ],
  "Another program holds a write lock": [
    "test/faults/locked-database.test.ts › keeps answering, lets writers wait and turns them away in words, and goes on when the lock is gone",
    "test/faults/locked-database.test.ts › lets a writer through that waited for a lock of a moment",
  ],
  "The last uses of tokens cannot be stored": [
    "packages/signalbox/src/accounts/token-index.test.ts › hands uses out again that could not be stored, less those of later or of removed tokens",
  ],
  "The removal of a token cannot be stored": [
    "packages/signalbox/src/accounts/tokens.test.ts › a token whose removal cannot be stored is refused at once, and removed for good by the next attempt (%s)",
  ],
  "PostgreSQL restarts, crashes or cannot be reached": [
    "test/faults/postgres-restarts.test.ts › loses nothing it acknowledged, never ends, and serves everything at the end",
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › goes on when all its sessions are cut off, in the middle of a transaction too",
  ],
  "The connection breaks while a write commits": [
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › finds out what became of a commit whose connection broke",
  ],
  "PostgreSQL stays away after such a break": [
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › says that an outcome is unknown when the server stays away, and goes on when the write turns out to be none",
  ],
  "PostgreSQL hangs": [
    "test/faults/postgres-hangs.test.ts › refuses what needs a server that hangs, answers calls meanwhile, and goes on when it does",
    "test/faults/postgres-hangs.test.ts › ends with 1 when a write took place whose outcome it had called unknown, and has the write when it is back",
    "packages/signalbox/src/database/postgres/postgres-limits.test.ts › lets nobody wait for a server that hangs, and goes on when it does",
  ],
  "PostgreSQL is not there at the start": [
    "test/faults/postgres-hangs.test.ts › waits at its start for a server that is not there yet, and says so in one line",
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › says in one line that the server cannot be reached, after it has waited for it",
  ],
  "PostgreSQL has no connection or no room left": [
    "packages/signalbox/src/database/postgres/postgres-limits.test.ts › says that the server has no connection left, and goes on when it has",
    "packages/signalbox/src/database/postgres/postgres-limits.test.ts › says that the server's disk is full, and goes on when it has room",
  ],
  "Another process took the database over": [
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › writes nothing more, and says so, once another process has had the database",
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › does not come back to a database that another process took while its session was lost",
  ],
  "The disk is full": [
    "test/faults/full-disk.test.ts › refuses writes in words, answers calls, says what is wrong, and goes on by itself when there is room",
    "packages/signalbox/src/engines/call-log/sqlite-call-log.test.ts › keeps the rows that fit into the queue while it cannot write, counts the others, and reports the failure once",
    "test/faults/full-journal.test.ts › answers senders in time whose deliveries wait for room, and keeps each of them once when there is room",
    "test/faults/full-disk.test.ts › shows everything there is on a full disk, instances that sleep included, and computes next to nothing",
  ],
  "A new instance does not fit": [
    "test/faults/full-disk.test.ts › makes a new instance whole or not at all, however little room is left",
  ],
  "There is room again": [
    "test/faults/full-disk.test.ts › refuses writes in words, answers calls, says what is wrong, and goes on by itself when there is room",
  ],
  "The process is killed on a full disk": [
    "test/faults/full-disk.test.ts › loses nothing it acknowledged when it is killed on a full disk",
  ],
  "The server is stopped on a full disk": [
    "test/faults/full-disk.test.ts › stops on a full disk, and loses nothing it acknowledged",
    "packages/signalbox/src/engines/call-log/sqlite-call-log.test.ts › closes in bounded time if it cannot write, and reports the number of lost rows",
  ],
  "The clock jumps forward": [
    "test/conformance/agents-work.test.ts › schedules made in onStart do not multiply, missed ones run once, and the queue goes on",
    "packages/signalbox/src/accounts/credential-ends.test.ts › notices within a second that the clock jumped over an expiry",
  ],
  "The clock is set back": [
    "test/faults/clock-steps.test.ts › a gateway with a rate limit (%s) is open again after its interval",
    "test/faults/clock-steps.test.ts › money that was spent meanwhile counts for one window from now on",
    "packages/signalbox/src/core/ulid.test.ts › follows a clock that ran a day ahead and was set right, with ids that are still distinct and in order",
    "packages/signalbox/src/agents/instance/delivery-ledger.test.ts › knows what came before the clock was set back into the period before, awake or not",
  ],
  "The clock was set back while tags change": [
    "test/conformance/tags-beyond.test.ts › never runs backwards, also when the clock does",
  ],
  "A client reads too slowly": [
    "test/conformance/agents-hooks.test.ts › is dropped at the limit; the others get everything",
    "test/conformance/gateway-streaming.test.ts › stops reading from the provider when the client does not read, and cuts a client that never does",
  ],
  "A client disappears without a close": [
    "test/conformance/agents-live.test.ts › that no longer answer pings are cut, and those that do stay",
  ],
  "Two sockets use one connection id": [
    "test/conformance/agents-live.test.ts › with an id that is in use replace the older one",
  ],
  "A client sends bytes that are not HTTP": [
    "test/conformance/listener.test.ts › is answered with 400 in the envelope and the connection is closed",
    "test/hostile/fuzzing.test.ts › finds nothing in a short run",
  ],
  "A caller of the gateway leaves": [
    "test/conformance/gateway-streaming.test.ts › cancels the upstream call when the client goes away, in the middle of a stream and before it",
  ],
  "The server restarts under `@signalbox/client`": [
    "test/conformance/client-agents.test.ts › is found again on its address, with the state it had acknowledged and without a call run twice",
  ],
};

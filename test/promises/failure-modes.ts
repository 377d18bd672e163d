import { CLUSTER_FAILURES } from "./cluster-failures.ts";
import { WATCH_FAILURES } from "./watch-failures.ts";

/** Each event of docs/failure-modes.md and the tests that hold us to it: `path › title`, where a title of `it.each` is its template. */
export const FAILURE_MODES: Readonly<Record<string, readonly string[]>> = {
  "A handler throws": [
    "test/conformance/webhook-failures.test.ts › tells operators why, with the stack, and the sender nothing",
    "test/conformance/webhook-failures.test.ts › is the last failure of its instance, also after a restart",
    "test/conformance/webhook-failures.test.ts › are counted by source, found by time and reason, and replayed together when the agent works again",
  ],
  "A turn hangs, and an operator looks": [
    "test/conformance/agents-debugging.test.ts › shows what is committed at once, and nothing that the turn has changed since",
    "test/conformance/agents-debugging.test.ts › are removed and run, also while another item runs; the running one is refused",
  ],
  ...CLUSTER_FAILURES,
  ...WATCH_FAILURES,
  "Work was accepted, and something fails afterwards": [
    "test/faults/work-goes-on.long.test.ts › after kill -9 and a restart",
    "test/faults/work-goes-on.long.test.ts › after a stop and a restart",
    "test/faults/work-goes-on.long.test.ts › after the clock was set ahead by an hour",
    "test/faults/work-goes-on.long.test.ts › after the clock was set back by an hour, what waits for no time",
    "test/faults/work-goes-on.long.test.ts › after a disk that was full again and again under load",
    "test/cluster/work-goes-on.long.test.ts › after a node was killed",
    "test/cluster/work-goes-on.long.test.ts › after a node was stopped",
    "test/cluster/work-goes-on.long.test.ts › after instances were fenced at nodes that stay alive",
    "test/cluster/work-goes-on.long.test.ts › after the disk of a node was full",
  ],
  "The process is killed": [
    "test/faults/agents-kill.long.test.ts › kills under load lose no reported change and leave no change partial",
    "test/faults/agents-plain-store.long.test.ts › kills under load lose no acknowledged change with %s",
    "test/faults/webhooks-kill.long.test.ts › kill -9 at full speed loses no acknowledged delivery and runs none twice",
    "test/faults/mixed-kill.long.test.ts › everything acknowledged survives seven kills at random moments under mixed load",
    "packages/signalbox/src/engines/instance-store/journal/next-segment.test.ts › a record that is written while the next segment is being created goes into that segment",
  ],
  "The process is killed in the middle of a workflow's step": [
    "test/worker/workflows.test.ts › kill -9 in the middle of a step: finished steps do not run again, the interrupted one does",
    "test/worker/workflows.test.ts › kill -9 while it sleeps: it wakes by itself",
    "packages/signalbox/src/worker/workflows/workflow-object.test.ts › after a crash finished steps are not repeated, and the step that was running is",
  ],
  "A worker's program does not load": [
    "test/worker/start.long.test.ts › load errors name the file and the reason",
    "test/worker/start.long.test.ts › the wrangler file must be readable and name exported classes",
  ],
  "The process is killed while an object has an alarm": [
    "test/faults/objects-kill.test.ts › nothing that was answered is lost, nothing is half-written, and every alarm rings",
  ],
  "Code outlives its instance": [
    "test/conformance/agents-long-work.test.ts › without a hold ends with an error when the instance has left memory, and writes nothing more",
    "packages/signalbox/src/agents/objects/object-life.test.ts › that is left ends the object: code that outlives it receives an error",
    "packages/signalbox/src/engines/turn-runtime/runtime-life.test.ts › fails running and waiting turns, whose code can neither write nor send",
  ],
  "An object is aborted, or its block fails": [
    "packages/signalbox/src/agents/objects/object-life.test.ts › that run when the object is aborted fail at once, and their code can neither write nor send",
    "packages/signalbox/src/agents/objects/object-life.test.ts › whose block fails is reset: what waits receives the error, and the next call constructs it again",
    "packages/signalbox/src/agents/objects/web-socket.test.ts › survives a handler that throws, and is cut when the object is aborted",
  ],
  "The power fails": [
    "test/faults/agents-power-cut.long.test.ts › every reported change is durable, and no change is partial",
    "test/faults/webhooks-power-cut.long.test.ts › entities whose first event was acknowledged are there after a power cut",
  ],
  "Instances have due work when the process starts again": [
    "test/faults/agents-waking.long.test.ts › all work is done once without any request",
    "test/conformance/agents-on-postgres.test.ts › all due instances of the catalog are woken, and accounts have names of their own",
  ],
  "WAL files of a killed process are left in the data folder": [
    "packages/signalbox/src/engines/instance-store/wal/spare-wal.test.ts › are removed in the background, and their folder with them when the store closes",
    "packages/signalbox/src/engines/instance-store/wal/spare-wal.test.ts › do not delay the start and are not read, and a WAL that is in use by then is not removed",
  ],
  "The server is stopped": [
    "test/conformance/running-it.test.ts › a running request finishes while new connections are refused",
    "test/conformance/running-it.test.ts › requests that are not finished are cut off after the grace period",
    "packages/signalbox/src/engines/http-server/draining.test.ts › a connection that was handed over and never ended is cut after the grace period",
    "test/conformance/agents-hooks.test.ts › clients are closed with a code that asks them to reconnect, and running turns finish",
    "test/faults/call-log.long.test.ts › no stored call is lost if the server is stopped directly after the last response",
    "test/faults/work-goes-on.long.test.ts › after a stop and a restart",
  ],
  "Agent code throws outside a turn": [
    "test/faults/uncaught-errors.test.ts › the server continues after uncaught errors of every kind in an agent and counts them",
    "test/faults/uncaught-errors.test.ts › a flood of errors writes few log lines",
  ],
  "The server's own code throws an uncaught exception": [
    "test/faults/uncaught-errors.test.ts › an uncaught error in the server's own code stops the server cleanly with a failure code",
  ],
  "The log cannot be written": [
    "test/faults/uncaught-errors.test.ts › the server continues if the reader of its log is gone",
    "test/faults/lost-log.test.ts › the server serves and stops cleanly if no log line can be written",
    "test/faults/lost-log.test.ts › the server serves while the log's disk is full and writes lines again when there is space",
  ],
  "The process is killed in the middle of migrations": [
    "test/faults/migrations-killed.long.test.ts › SQLite migrations start again after a kill at any statement",
    "test/faults/migrations-killed.long.test.ts › PostgreSQL migrations start again after a kill at any statement",
  ],
  "A second process is started": [
    "test/conformance/running-it.test.ts › a folder or a port in use by another process, named with its pid, and the files stay unchanged; the folder of a killed one can be used",
    "test/conformance/running-it.test.ts › the service uses PostgreSQL, keeps accounts over a restart and refuses a second process, which creates no token",
  ],
  "A queue item or schedule was running": [
    "test/conformance/agents-work.test.ts › an item that kills the process becomes a dead letter after its last attempt",
  ],
  "An event arrives while its instance is being destroyed": [
    "packages/signalbox/src/agents/instance/destroy.test.ts › an event between the end of the instance and the end of its file starts a new one, and what it writes is kept",
    "test/conformance/agents-matrix.test.ts › an instance that %s: %s",
  ],
  "A queue item fails every time": [
    "test/conformance/agents-work.test.ts › an item becomes a dead letter after its last attempt, the queue continues, and a dead letter can be replayed",
    "test/conformance/agents-work.test.ts › a failed item is retried and does not block the items after it",
  ],
  "A schedule was missed": [
    "test/conformance/agents-work.test.ts › schedules created in onStart are not duplicated, missed schedules run once, and the queue continues",
  ],
  "A turn throws": [
    "test/conformance/agents-calls.test.ts › a turn that throws synchronously leaves no trace",
    "test/conformance/agents-calls.test.ts › a turn that throws after real I/O keeps the writes made before the I/O",
    "test/conformance/agents-calls.test.ts › an exception in onRequest is answered 500 without detail",
    "test/conformance/agents-live.test.ts › a state change of a turn that then fails is not sent",
  ],
  "A turn never ends": [
    "test/conformance/agents-calls.test.ts › a turn that exceeds its time limit is aborted, and the next turn runs",
    "test/conformance/agents-calls.test.ts › an aborted turn cannot write",
  ],
  "`onStart` throws": [
    "test/conformance/agents-instances.test.ts › a failed start is reported to every waiting caller, and the next request tries again",
  ],
  "An instance cannot start": [
    "test/faults/agents-waking.long.test.ts › instances that cannot start are retried rarely and keep their work",
    "packages/signalbox/src/agents/instance/waker.test.ts › wakes a failing instance at increasing intervals without delaying the others",
  ],
  "An instance's file is damaged": [
    "test/faults/agents-damaged-file.long.test.ts › calls of a damaged instance get an internal error, and other instances work",
    "test/faults/agents-damaged-file.long.test.ts › failed instances are not retried for a while, whichever page is damaged",
  ],
  "The file of a secret is empty, or `master-key` is cut": [
    "packages/signalbox/src/accounts/secret-file.test.ts › a file that %s is an error, and stays as it is: no new secret takes its place",
    "packages/signalbox/src/engines/durable-file/durable-file.test.ts › a file is replaced as a whole: its content and then its name are durable before the function returns",
  ],
  "An instance's file was written by a newer version": [
    "packages/signalbox/src/engines/instance-store/schema-version.test.ts › that a later version wrote is refused and not changed",
  ],
  "The journal is damaged": [
    "packages/signalbox/src/engines/instance-store/journal/journal.test.ts › is refused if a segment other than the newest is damaged",
    "packages/signalbox/src/engines/instance-store/journal/journal.test.ts › ignores an incomplete record and an instance without a commit",
  ],
  "A sync fails": [
    "packages/signalbox/src/engines/sqlite-file/wal-sync.test.ts › fails all pending and later calls after a failed sync, does not retry, and reports the failure once",
    "packages/signalbox/src/engines/turn-runtime/output-gate.test.ts › releases nothing after a failed sync",
  ],
  "The process dies while an instance is destroyed": [
    "packages/signalbox/src/engines/instance-store/journal/journal.test.ts › does not restore a destroyed instance, and keeps it apart from its successor",
    "packages/signalbox/src/agents/instance/catalog-presence.test.ts › one whose database is new has no work, even if the catalog has a due time",
  ],
  "An instance gets events faster than it handles them": [
    "test/conformance/agents-instances.test.ts › calls to an overloaded instance are answered 503 with Retry-After until the load is gone",
  ],
  "All instances in memory are busy": [
    "test/conformance/agents-instances.test.ts › new instances are refused if the limit is reached and all instances are busy",
  ],
  "Thousands of sockets close at once": [
    "test/conformance/agents-closed-connections.test.ts › closing connections opens no database if the agent has no onClose",
    "test/conformance/agents-closed-connections.test.ts › onClose runs for every connection, even if few instances fit in memory",
    "packages/signalbox/src/agents/doors/departures.test.ts › closed connections wait a minute for an instance that can be opened, then they are counted and logged",
  ],
  "The server stops while instances are idle": [
    "test/conformance/agents-closed-connections.test.ts › the log reports how many onClose calls did not run",
  ],
  "An agent rejects an event": [
    "test/conformance/webhook-refusals.test.ts › RejectEvent is answered 400 with the message, nothing is written, and the event can be sent again",
    "test/conformance/webhook-refusals.test.ts › an error response of the agent refuses the event and is sent to the sender",
    "test/conformance/webhook-refusals.test.ts › a refused event is in the inspector as refused and not among the agent's events",
  ],
  "An agent's module does not load": [
    "test/conformance/agents-instances.test.ts › a broken module stops the start with one line that names the module",
  ],
  "A class was removed": [
    "test/faults/agents-waking.long.test.ts › work of a class that is not loaded waits until the class is loaded again",
    "test/conformance/agents-calls.test.ts › an unknown agent or a missing instance name is 404",
  ],
  "A method that queued work refers to was removed": [
    "test/conformance/agents-modules.test.ts › a queue item for a method that the class no longer has becomes a dead letter",
  ],
  "Storage fails during a tag subscription": [
    "packages/signalbox/src/agents/doors/tag-subscriptions.test.ts › continue after errors of the storage at any step, and report them",
    "packages/signalbox/src/agents/doors/tag-subscriptions.test.ts › deliver a change again if its position could not be stored; the ledger recognises it",
  ],
  "A provider closes the connection during a response": [
    "test/conformance/gateway-streaming.test.ts › the client detects that the provider broke off the response",
    "test/conformance/gateway-cut-streams.test.ts › a stream of %s that breaks off ends with an error event",
    "test/conformance/gateway-failover.test.ts › S08: a stream that is cut in the middle is replaced by a whole answer",
  ],
  "A provider sends an error inside a success, or an empty stream": [
    "test/conformance/gateway-failover.test.ts › a stream that begins with %s goes to the next step",
  ],
  "A provider fails again and again": [
    "test/conformance/gateway-failover.test.ts › S15: while a provider is down the fallback answers without waiting for it, and the provider is used again when it works",
  ],
  "A provider cannot be reached, or sends something that is not HTTP": [
    "test/conformance/gateway-streaming.test.ts › a provider that cannot be reached or hangs up is answered 502 with code 2005",
    "test/conformance/gateway-bad-input.test.ts › a provider that %s: 502 and code 2005",
    "test/hostile/gateway-provider-responses.test.ts › a provider that sends %s for ever is a 502",
  ],
  "A provider does not answer in time": [
    "test/conformance/gateway-streaming.test.ts › a provider that does not answer is timed out with 504 and code 2004",
    "test/conformance/gateway-retries.test.ts › the next step runs when a step %s",
  ],
  "The server of a cloud identity fails": [
    "packages/signalbox/src/gateway/providers/identity/cloud-identities.test.ts › is used until a minute before its end while no newer one can be had, and the reason is shown",
    "packages/signalbox/src/gateway/providers/identity/cloud-identities.test.ts › that is not sent in time is given up",
    "packages/signalbox/src/gateway/providers/identity/cloud-identities.test.ts › that is refused says why, and is tried again after a second",
    "test/conformance/gateway-cloud-providers.test.ts › that gives no credential is an error with a code, and nothing is sent to the provider",
  ],
  "A provider closes a reused connection during a POST": [
    "test/hostile/gateway-provider-responses.test.ts › a POST on a kept connection that dies is not repeated: the caller gets a 502",
    "test/hostile/gateway-provider-responses.test.ts › with %s the request is repeated",
  ],
  "Uploads fill the memory budget": [
    "test/hostile/gateway-memory.test.ts › bodies beyond the budget are refused with 503 and Retry-After while other callers hold it",
    "test/hostile/gateway-memory.test.ts › small calls are admitted while stalled bodies fill the budget",
    "test/hostile/gateway-memory.test.ts › stalled bodies are cut off with 408 and their memory is released",
  ],
  "The process is killed before calls are logged": [
    "test/faults/call-log.long.test.ts › a killed process keeps the written rows; later rows are complete or absent",
    "packages/signalbox/src/engines/call-log/sqlite-call-log.test.ts › writes rows after the flush interval without a read",
  ],
  "The thread that writes the call log dies": [
    "packages/signalbox/src/engines/call-log/sqlite-call-log.test.ts › neither loses nor duplicates rows when the writer's thread dies",
    "packages/signalbox/src/engines/call-log/postgres/postgres-call-log.test.ts › neither loses nor duplicates rows when the writer's thread dies",
  ],
  "PostgreSQL is unavailable while calls are logged": [
    "packages/signalbox/src/engines/call-log/postgres/postgres-call-log.test.ts › keeps the rows that fit into the queue while PostgreSQL is away, counts the others, and writes each once",
  ],
  "PostgreSQL or a connection is killed while rows of the call log are written": [
    "test/faults/call-log-postgres.long.test.ts › calls go on while PostgreSQL is killed again and again, and each is stored once",
    "packages/signalbox/src/engines/call-log/postgres/postgres-call-log.test.ts › neither loses nor duplicates rows when its connection is cut at any step of a transaction",
    "packages/signalbox/src/engines/call-log/postgres/postgres-call-log.test.ts › writes and counts nothing again whose commit was not reported, also calls that a quota kept out",
  ],
  "A node is killed before its calls are logged": [
    "test/faults/call-log-postgres.long.test.ts › a killed process keeps the written rows, and its queue only is lost: no row is doubled or half counted",
  ],
  "A node does not answer while calls or deliveries are listed at another one": [
    "test/cluster/call-log.long.test.ts › a node that is killed delays the lists of the others for a moment, and takes only its queue with it",
  ],
  "Stored calls reach `gateway.logs.maxTotalBytes`": [
    "test/hostile/call-log-size.test.ts › the oldest bodies are removed, rows and figures stay, also after a restart",
    "packages/signalbox/src/engines/call-log/size-limit.test.ts › removes the oldest rows when no body is left, and keeps the usage",
  ],
  "Spend totals cannot be written": [
    "packages/signalbox/src/gateway/limits/limits.test.ts › keeps amounts that it could not write, and writes them later with those settled since",
    "packages/signalbox/src/gateway/limits/limits.test.ts › reports a failed periodic write, without an unhandled rejection",
  ],
  "The process is killed while calls run under a limit": [
    "test/faults/spend-kill.test.ts › no amount that a provider billed is lost, whenever the process is killed",
    "packages/signalbox/src/gateway/limits/limits.test.ts › counts calls that were running when the process was killed with what they had reserved",
    "packages/signalbox/src/gateway/limits/limits.test.ts › counts an amount once if the process is killed after the database has it",
  ],
  "PostgreSQL is gone while calls run under limits": [
    "packages/signalbox/src/gateway/limits/shared-limits-outage.test.ts › crashes of PostgreSQL under load: exactly the limit passes",
    "packages/signalbox/src/gateway/limits/shared-limits-outage.test.ts › without PostgreSQL, calls pass out of what the node had taken, and are then refused with 503",
  ],
  "A node dies while calls run under limits": [
    "test/cluster/limits.long.test.ts › no amount that the provider billed is lost, and none beyond the limit is spent, while a node is killed",
    "packages/signalbox/src/gateway/limits/shared-limits.test.ts › counts what a killed node held and had taken as spent; its parallel calls are free",
    "packages/signalbox/src/gateway/limits/shared-limits.test.ts › a node that was declared dead goes on under its new identity, and loses nothing that it spent",
    "packages/signalbox/src/gateway/limits/shared-limits-property.test.ts › money: never more than the limit, and nothing is lost",
  ],
  "The process is killed while a gateway is deleted": [
    "test/faults/gateway-deletion.test.ts › nothing of a gateway is left after `kill -9` during its deletion",
    "packages/signalbox/src/gateway/settings/gateway-deletions.test.ts › finishes an interrupted deletion at the next start, before the name can be used",
    "packages/signalbox/src/gateway/settings/gateway-deletions.test.ts › does not create a gateway while data of the deleted one is left",
  ],
  "The encryption key does not match": [
    "test/hostile/provider-secret-headers.test.ts › headers encrypted with another key: the provider is named, its calls are refused, and the rest is served",
  ],
  "An instance handles webhooks slowly": [
    "test/conformance/webhook-late.test.ts › six deliveries behind a slow handler are answered 202 while it runs, and each is handled once",
    "test/conformance/webhook-late.test.ts › a slow handler does not delay other entities, which are answered 200",
    "packages/signalbox/src/webhooks/intake-in-time.test.ts › is answered 503 at the limit when the delivery cannot be stored in time, and a row stored later is deleted",
  ],
  "The process is killed while routes deliver events": [
    "test/faults/webhook-routes-kill.test.ts › kill -9 under load: an agent gets each delivery once, each address at least once with one id and one attempt at a time, and in order where asked",
    "packages/signalbox/src/webhooks/routing/routing.test.ts › a process that starts attempts again what an earlier one was attempting when it died",
  ],
  "The receiver of a route fails": [
    "packages/signalbox/src/webhooks/routing/routing.test.ts › a receiver that fails for two hours has the event afterwards, with one id and an attempt at each time of the plan",
    "test/conformance/webhook-routes.test.ts › a status that the route does not retry, and the end of the retries, make an event fail, and a replay delivers it",
  ],
  "The receiver of a route is gone": [
    "test/conformance/webhook-routes.test.ts › 410 pauses the route and says so; the event is held, and delivered when the route is resumed",
    "packages/signalbox/src/webhooks/routing/routing.test.ts › an endpoint that only fails for five days pauses its route, and says so; a success in between does not",
    "packages/signalbox/src/webhooks/routing/routing.test.ts › held events are delivered at the rate of the route when it is resumed, and not all at once",
  ],
  "A node that delivers events of a route is lost": [
    "test/cluster/webhook-routes.long.test.ts › three routes under load and two killed nodes: an agent gets each delivery once, each address at least once with one id, one attempt at a time, in order where asked",
    "packages/signalbox/src/webhooks/routing/routing.test.ts › of two nodes one makes the attempts of a route, and when it is lost another one does, after the attempts of the first have certainly ended",
    "packages/signalbox/src/webhooks/routing/routing.test.ts › two nodes that both believe to own a route do not attempt an event twice",
  ],
  "The process is killed after a 202": [
    "test/faults/webhooks-late-kill.test.ts › kill -9 after a 202 loses no delivery and stores none twice",
  ],
  "A handler fails after a 202": [
    "packages/signalbox/src/webhooks/late-deliveries.test.ts › a delivery that fails is retried after growing pauses, given up after eight failures, and can be revived",
    "test/conformance/webhook-late.test.ts › the list of accepted deliveries belongs to the account, and only failed ones can be replayed or discarded",
  ],
  "A handler fails before an answer": [
    "test/conformance/webhook-agent.test.ts › a failure (%s) is answered 500 without a reason, and nothing is counted",
    "test/conformance/webhook-agent.test.ts › a failed delivery runs again on the provider's retry, and then once",
  ],
  "Too many deliveries arrive at once": [
    "test/conformance/webhook-overload.test.ts › deliveries over the limit are answered 503 with Retry-After until others finish",
  ],
  "A delivery arrives twice": [
    "test/conformance/webhook-agent.test.ts › 50 concurrent copies of one delivery run once",
    "test/conformance/webhook-agent.test.ts › everything is there after a restart, and earlier deliveries are duplicates",
  ],
  "The inspector's list cannot be written": [
    "packages/signalbox/src/webhooks/webhook-storage.test.ts › records that a failing database cannot store are listed from memory, and are written when it works again",
  ],
  "A new entity's name cannot be claimed": [
    "packages/signalbox/src/webhooks/entity-claims.test.ts › a claim that cannot be written is refused as overloaded, and succeeds when it is repeated",
  ],
  "The process is killed while tags are written": [
    "test/faults/tags-killed.test.ts › no acknowledged write is lost, and no two writes are mixed",
  ],
  "The process is killed while a job changes tags": [
    "packages/signalbox/src/tags/jobs/tag-jobs.test.ts › a job that is interrupted in any of its steps goes on where it was, and two processes do nothing twice",
    "packages/signalbox/src/tags/jobs/tag-jobs.test.ts › the job of a process that is gone is taken over when its lease has ended",
  ],
  "Two writers change one resource": [
    "test/conformance/tags-writing.test.ts › one of many concurrent writers succeeds, and readers see complete sets only",
  ],
  "A reader of the change feed is too far behind": [
    "test/conformance/tags-extensions.test.ts › a position that is too old is answered 410 with code 1018",
  ],
  "Another program holds a write lock": [
    "test/faults/locked-database.long.test.ts › reads are answered, writers wait and are then refused with an explanation, and writes work when the lock is released",
    "test/faults/locked-database.long.test.ts › a writer succeeds after a short lock",
  ],
  "The last-use times of tokens cannot be stored": [
    "packages/signalbox/src/accounts/token-index.test.ts › restores uses that could not be stored, except those of tokens used again or removed",
  ],
  "The removal of a token cannot be stored": [
    "packages/signalbox/src/accounts/tokens.test.ts › refuses a revoked token at once if the database cannot be written, and deletes its row with the next attempt (%s)",
  ],
  "PostgreSQL restarts, crashes or cannot be reached": [
    "test/faults/postgres-restarts.long.test.ts › no acknowledged write is lost, the server keeps running, and everything works at the end",
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › recovers after all sessions were terminated, also during a transaction",
  ],
  "The connection breaks while a write commits": [
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › determines the outcome of a commit whose connection broke, and runs the transaction again if it had none",
  ],
  "Two nodes change the same setting at once": [
    "test/cluster/paused-node.long.test.ts › two nodes that write the same rows at once end with the same settings, and lose no change",
  ],
  "A node is killed while it changes a setting": [
    "test/cluster/paused-node.long.test.ts › a revocation that is repeated, because its node was killed, is answered when the others have read it",
    "packages/signalbox/src/cluster/cluster-settings.test.ts › so is one that is refused",
  ],
  "A node stops inside a transaction, or while it joins": [
    "packages/signalbox/src/database/postgres/node-session.test.ts › writes of a scope go on although a node has stopped inside a transaction of the scope",
    "packages/signalbox/src/database/postgres/node-session.test.ts › a node joins, and another one joins again, although a third one has stopped inside its join",
    "packages/signalbox/src/engines/postgres-session/connect-primary.test.ts › the server ends a transaction whose client is silent, and a statement that waits for its lock goes on",
  ],
  "A node is paused": [
    "test/cluster/paused-node.long.test.ts › a paused node holds up a revocation until it is declared dead, and then refuses the token before it answers",
    "test/cluster/paused-node.long.test.ts › messages of a revoked token that arrived during the pause are not handled",
    "test/cluster/paused-node.long.test.ts › a pause that is too short for a declaration changes nothing",
    "packages/signalbox/src/cluster/lease.test.ts › a node that was declared dead has no lease, although its clocks stood still with the machine",
  ],
  "PostgreSQL stays unavailable after such a failure": [
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › reports an unknown outcome if the server stays unavailable, and continues if the write was not committed",
  ],
  "PostgreSQL hangs": [
    "test/faults/postgres-hangs.long.test.ts › requests that need a hanging PostgreSQL are refused, calls are answered, and everything works when it responds again",
    "test/faults/postgres-hangs.long.test.ts › the server reads its settings again if a write that it reported as unknown took place",
    "packages/signalbox/src/database/postgres/postgres-limits.test.ts › fails all queries if the server hangs, and recovers",
  ],
  "PostgreSQL is unavailable at start": [
    "test/faults/postgres-hangs.long.test.ts › the start waits for PostgreSQL and logs one line about it",
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › reports in one line that the server cannot be reached, after the wait",
  ],
  "A node is started after a failover": [
    "test/cluster/failover.test.ts › no call fails, no acknowledged write is lost, nothing is reported as lost, and a node can be started",
    "packages/signalbox/src/engines/postgres-session/connect-primary.test.ts › finds the primary at the first attempt if the server before it %s",
    "packages/signalbox/src/engines/call-log/postgres/postgres-call-log.test.ts › opens at the first attempt if a server that is named before the primary is away, and expires there",
  ],
  "Another transaction in PostgreSQL holds a lock": [
    "packages/signalbox/src/database/postgres/node-session.test.ts › a write that waits for a lock for too long is refused, and the node stays ready",
    "packages/signalbox/src/database/postgres/node-session.test.ts › a transaction that may take long waits for its scope, and not for a table",
  ],
  "PostgreSQL cannot store the heartbeats of a node, and can be read": [
    "packages/signalbox/src/database/postgres/node-session.test.ts › a node whose heartbeats find no room does not count as alive, and learns that it was declared dead",
    "packages/signalbox/src/cluster/lease.test.ts › a read shows that memory is up to date, and begins no lease",
    "packages/signalbox/src/database/postgres/heartbeats.test.ts › a read in place of a heartbeat keeps memory up to date, and the node is not ready",
  ],
  "PostgreSQL has no free connection or disk space": [
    "packages/signalbox/src/database/postgres/postgres-limits.test.ts › reports that the server has no free connection, and recovers",
    "packages/signalbox/src/database/postgres/postgres-limits.test.ts › reports that the disk of the server is full, and recovers",
  ],
  "Another process took over the database": [
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › writes nothing and calls onLost after another process owned the database",
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › calls onLost if another process took the database while the session was lost",
  ],
  "The disk is full": [
    "test/faults/full-disk.long.test.ts › writes are refused with an explanation, calls are answered, readiness names the cause, and the server recovers when there is space",
    "packages/signalbox/src/engines/call-log/sqlite-call-log.test.ts › keeps the rows that fit into the queue while it cannot write, counts the others, and reports the failure once",
    "test/faults/full-journal.test.ts › senders whose deliveries wait for space are answered in time, and each delivery is kept once when there is space",
    "test/faults/full-disk.long.test.ts › all data can be read on a full disk, idle instances included, at almost no CPU time",
  ],
  "Storage fails in the middle of a call to an instance": [
    "packages/signalbox/src/agents/instance/due-not-stored.test.ts › a call that was stored although its due time was not has an unknown outcome: a caller must not repeat it",
    "packages/signalbox/src/engines/turn-runtime/turn-runtime.test.ts › is told so if an earlier segment was committed, also if its code throws the error of a later one",
    "packages/signalbox/src/agents/instance/full-disk.test.ts › all turns of the transaction, and a turn that reads behind them, are told that the storage is unavailable",
  ],
  "A new instance does not fit on the disk": [
    "test/faults/full-disk.long.test.ts › a new instance is created completely or not at all, however little space is left",
  ],
  "Disk space is available again": [
    "test/faults/full-disk.long.test.ts › writes are refused with an explanation, calls are answered, readiness names the cause, and the server recovers when there is space",
    "packages/signalbox/src/agents/work/work-pump.test.ts › work whose storage failed for a moment goes on after the pause, also beside a schedule of later",
    "packages/signalbox/src/agents/work/work-pump.test.ts › an attempt that the storage has ended is repeated after the pause and not counted, unless the work fills the disk itself",
    "packages/signalbox/src/worker/workflows/workflow-object.test.ts › whichever write the storage refuses, the workflow completes, its program sees nothing of it, and no attempt of a step is counted",
  ],
  "The process is killed on a full disk": [
    "test/faults/full-disk.long.test.ts › a kill on a full disk loses no acknowledged write",
  ],
  "The server is stopped on a full disk": [
    "test/faults/full-disk.long.test.ts › a stop on a full disk succeeds and loses no acknowledged write",
    "packages/signalbox/src/engines/call-log/sqlite-call-log.test.ts › closes in bounded time if it cannot write, and reports the number of lost rows",
  ],
  "The clock jumps forward": [
    "test/conformance/agents-work.test.ts › schedules created in onStart are not duplicated, missed schedules run once, and the queue continues",
    "test/faults/clock-steps.test.ts › a schedule runs when the clock is set past its time, at an instance that is in memory and at one that is not",
    "packages/signalbox/src/accounts/credential-ends.test.ts › ends a credential within a second after the clock is set past its expiry",
  ],
  "The clock is set back": [
    "test/faults/clock-steps.test.ts › a gateway with a rate limit (%s) serves again after its interval",
    "test/faults/clock-steps.test.ts › amounts spent in between count for one window",
    "test/faults/clock-steps.test.ts › items of a queue run after the clock was set back",
    "packages/signalbox/src/core/ulid.test.ts › generates distinct, increasing ids after the clock is set back by a day",
    "packages/signalbox/src/agents/instance/delivery-ledger.test.ts › recognises earlier deliveries after the clock was set back by a period, whether or not the instance was reloaded",
  ],
  "PostgreSQL's clock is set back": [
    "packages/signalbox/src/database/postgres/node-session.test.ts › a silent node is declared dead although PostgreSQL's clock was set back",
    "packages/signalbox/src/database/postgres/node-session.test.ts › a process that was killed before PostgreSQL's clock was set back is replaced",
    "packages/signalbox/src/database/postgres/silences.test.ts › a clock of PostgreSQL that was set back does not keep a silent node alive",
  ],
  "The clock is set back while tags change": [
    "test/conformance/tags-extensions.test.ts › times in the history never decrease, even if the clock is set back",
  ],
  "A client reads too slowly": [
    "test/conformance/agents-hooks.test.ts › a slow reader is disconnected at the buffer limit; other connections receive everything",
    "test/conformance/gateway-streaming.test.ts › reading from the provider stops while the client does not read, and a client that never reads is disconnected",
  ],
  "A client disappears without closing its connection": [
    "test/conformance/agents-live.test.ts › connections that do not answer pings are closed, and the others stay open",
  ],
  "Two sockets use one connection id": [
    "test/conformance/agents-live.test.ts › a connection with an id in use replaces the older connection",
  ],
  "A client sends bytes that are not HTTP": [
    "test/conformance/listener.test.ts › malformed HTTP is answered 400 in the envelope, and the connection is closed",
    "test/hostile/fuzzing.long.test.ts › a short run finds no failure",
  ],
  "A caller disconnects from a resumable stream": [
    "test/conformance/gateway-streaming.test.ts › goes on without its client, and is read from any event on, while it runs and after its end",
    "test/conformance/gateway-streaming.test.ts › is that of its token, and is ended by a DELETE",
  ],
  "A caller of the gateway disconnects": [
    "test/conformance/gateway-streaming.test.ts › the upstream call is cancelled when the client disconnects, before and during a stream",
  ],
  "The server restarts while `@signalbox/client` is connected": [
    "test/conformance/client-agents.test.ts › the client reconnects to the same address, receives the acknowledged state and repeats no call",
  ],
};

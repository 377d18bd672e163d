/** The part of `FAILURE_MODES` about PostgreSQL that is away, and about nodes of a cluster. */
export const CLUSTER_FAILURES: Readonly<Record<string, readonly string[]>> = {
  "PostgreSQL stays away longer than `cluster.maxStaleMs`": [
    "test/faults/postgres-failover.long.test.ts › a server that runs alone refuses calls when PostgreSQL has hung for cluster.maxStaleMs, and serves again afterwards",
    "test/cluster/database-gone.long.test.ts › a node in a black hole answers calls from memory, then 503 with Retry-After; the other node serves, and everything heals",
  ],
  "A standby replaces PostgreSQL": [
    "packages/signalbox/src/database/postgres/failover.test.ts › a synchronous standby that replaces the primary has every acknowledged write, and nothing is reported as lost",
  ],
  "A standby that lacks acknowledged commits replaces PostgreSQL": [
    "test/faults/postgres-failover.long.test.ts › lost commits are logged, counted and shown; the server goes on with what the new primary has",
    "packages/signalbox/src/database/postgres/failover.test.ts › a standby that lacks acknowledged writes is noticed, and the node reads everything anew instead of exiting",
    "packages/signalbox/src/database/postgres/failover.test.ts › a server that does not know the node any more has lost its commits, too",
    "packages/signalbox/src/engines/instance-store/shared/fence-race.test.ts › lets the former owner change nothing",
    "packages/signalbox/src/engines/instance-store/shared/snapshots.test.ts › of an instance that is fenced are not written, and end when it is fenced in the middle",
    "packages/signalbox/src/engines/instance-store/shared/shared-hazards.test.ts › lead to one server: when a standby has replaced it, those to the former primary are not used any more",
    "packages/signalbox/src/engines/instance-store/shared/shared-hazards.test.ts › counts what is gone, also of instances that another node has claimed meanwhile, and nothing else",
  ],
  "The wait for a synchronous standby is cancelled": [
    "packages/signalbox/src/database/postgres/failover.test.ts › a commit that did not wait for its standby is not acknowledged until the standby has it",
    "packages/signalbox/src/database/postgres/failover.test.ts › a commit whose standby stays away is answered as unknown, and what is in memory is read anew when it turns out committed",
  ],
  "PostgreSQL has unsafe settings": [
    "test/faults/postgres-failover.long.test.ts › unsafe settings of PostgreSQL are reported at the start and to operators",
    "test/browser/dashboard-cluster.long.test.ts › the page of the cluster shows nodes that drain and die, take-overs, unsafe settings and a database that is gone",
  ],
  "A process that uses PostgreSQL alone is killed and started again at once": [
    "packages/signalbox/src/database/postgres/node-session.test.ts › a process that replaces a killed one waits until the killed one is dead",
  ],
  "A node is killed or loses its machine": [
    "packages/signalbox/src/database/postgres/node-session.test.ts › a node whose heartbeat is late is declared dead by the server's clock, and comes back with a new incarnation",
  ],
  "A process of several on one machine is killed": [
    "test/cluster/processes.test.ts › a process that is killed is started again; the connection that was being handed to it is answered by another one",
    "test/cluster/processes.long.test.ts › kill -9 under a connection for each request: every request succeeds or fails at once, and the supervisor keeps no connection",
    "test/cluster/processes.long.test.ts › if all processes are killed, they come back on the same port",
  ],
  "The processes of a machine are replaced": [
    "test/cluster/processes.test.ts › SIGHUP replaces one process after the other without a failed request, on new connections and on kept ones",
    "test/cluster/processes.long.test.ts › a process that cannot start anew ends the roll-over, the others go on, and it is back when it can",
  ],
  "The supervisor of several processes is killed": [
    "test/cluster/processes.long.test.ts › if the supervisor is killed, its processes stop in order and none stays",
  ],
  "A node loses PostgreSQL, and others do not": [
    "test/cluster/database-gone.long.test.ts › a node in a black hole answers calls from memory, then 503 with Retry-After; the other node serves, and everything heals",
    "test/cluster/database-gone.long.test.ts › writes that need a database in a black hole fail within a bound, and store nothing or say that the outcome is unknown",
  ],
  "PostgreSQL restarts under several nodes": [
    "test/cluster/database-gone.long.test.ts › calls go on at both nodes while PostgreSQL is killed and restarted",
    "packages/signalbox/src/database/postgres/node-session.test.ts › after a long stop of the server all nodes come back as they were",
  ],
  "PostgreSQL, or a machine with all nodes, stalls for some seconds": [
    "packages/signalbox/src/database/postgres/node-session.test.ts › declares nobody dead after a stall of the server, which has delayed the heartbeats of all",
    "packages/signalbox/src/database/postgres/node-session.test.ts › a node may be silent for as long as it has asked for, whatever the others have",
    "packages/signalbox/src/database/postgres/silences.test.ts › a node seems dead when it is late and was silent for four heartbeats of the observer",
  ],
  "A node is stopped": [
    "test/cluster/stopping.long.test.ts › a stopped node is not ready, serves for listener.lameDuckMs, finishes what runs, and leaves",
  ],
  "A node is stopped while PostgreSQL is away": [
    "packages/signalbox/src/database/postgres/postgres-database.test.ts › a process that stops waits for no server that is away",
    "packages/signalbox/src/database/postgres/postgres-limits.test.ts › closes while the server hangs",
    "test/cluster/agents-cut-off.long.test.ts › a node without PostgreSQL stops when it is told to",
  ],
  "The node of a worker's object is lost": [
    "test/worker/nodes-lost.long.test.ts › when the owner is killed, its objects go on at another node with what was acknowledged; clients are cut and callers told",
    "test/worker/agents-nodes.long.test.ts › when the owner is killed in the middle of calls, the clients of the other node come back to what was answered",
    "packages/signalbox/src/agents/remote/objects/remote-objects.test.ts › a caller whose node loses the object's node gets an error that may be retried",
  ],
  "A node with worker objects stops": [
    "test/worker/nodes-lost.long.test.ts › a node that stops hands its objects over, and the WebSockets of other nodes' clients follow without a new request",
    "packages/signalbox/src/agents/remote/objects/socket-moves.test.ts › frames that arrive while the object moves are handled once, in order",
    "packages/signalbox/src/agents/remote/objects/remote-objects.test.ts › a node that stops refuses a call, which runs elsewhere, and ends what others hold of it",
  ],
  "The node of an object's client is lost": [
    "test/worker/nodes-lost.long.test.ts › when the owner is killed, its objects go on at another node with what was acknowledged; clients are cut and callers told",
    "packages/signalbox/src/agents/remote/objects/socket-moves.test.ts › when the client's node is lost, the object sees one close with 1006; when the object's node is, so does the client",
  ],
  "Nodes are restarted one after the other behind a load balancer": [
    "test/chaos/rolling-restarts.long.test.ts › rolling restarts behind a load balancer refuse no connection and fail no call",
  ],
  "Nodes cannot reach each other, and all reach PostgreSQL": [
    "test/chaos/chaos.long.test.ts › three nodes keep their promises through every kind of fault",
  ],
  "Nodes, networks and PostgreSQL fail in any order": [
    "test/chaos/chaos.long.test.ts › three nodes keep their promises through every kind of fault",
    "packages/signalbox/src/tags/store/tag-store-two-nodes.test.ts › a node reads what another node has written, whatever it read before",
    "packages/signalbox/src/cluster/cluster-settings.test.ts › a node that reads everything at the moment acknowledges a later change only when it has it",
  ],
  "A client asks one node, and the node of its instance is killed meanwhile": [
    "test/cluster/lost-owner.long.test.ts › requests, calls, streams and tails that are under way end clearly, and reads are answered by the next owner",
  ],
  "A webhook arrives at one node, and the node of its instance is killed before it answers": [
    "test/cluster/lost-owner.long.test.ts › deliveries that are under way are handled once each, and none is lost",
    "packages/signalbox/src/agents/remote/deliveries.test.ts › a delivery whose link breaks is sent again with the same id",
  ],
  "The node that answered 202 to a sender is killed before the instance has handled the delivery": [
    "packages/signalbox/src/webhooks/late-deliveries.test.ts › a delivery of a node that is gone is attempted by another one at once, and not before",
    "packages/signalbox/src/webhooks/late-deliveries.test.ts › a node that stops gives back the deliveries that it attempts",
    "packages/signalbox/src/webhooks/late-deliveries.test.ts › two nodes of a cluster attempt each delivery once",
  ],
  "One node sends another one more than it can hold": [
    "packages/signalbox/src/agents/remote/deliveries.test.ts › the owner refuses deliveries beyond its limits, and has room again afterwards",
    "packages/signalbox/src/agents/remote/exchange.test.ts › a request beyond the memory of the other node is refused and not run",
  ],
  "The instance of a subscription to tag changes moves": [
    "packages/signalbox/src/agents/doors/tag-subscriptions.test.ts › two nodes follow one after the other, and none goes back",
  ],
  "A stranger reaches the port between nodes": [
    "test/hostile/cluster-port.test.ts › strangers that hold connections open do not keep a node out (TLS: %s)",
    "test/hostile/cluster-port.test.ts › a recorded handshake cannot be replayed, and a proof cannot be reflected",
    "test/hostile/cluster-port.test.ts › a node of another cluster is refused, with the same secret or another one",
  ],
  "A provider refuses a stored key at one node": [
    "test/cluster/provider-keys.test.ts › a key that a provider refuses at one node is not used by another until it is edited",
    "test/cluster/provider-keys.test.ts › a key that has worked at one node is not invalid because another node gets a 403 for a model",
  ],
  "A node's clock is wrong": [
    "test/cluster/clocks.long.test.ts › a node whose clock is %s is a member, says that it is not ready, and serves",
    "packages/signalbox/src/database/postgres/heartbeats.test.ts › a clock that is more than five seconds off is a problem, whatever its direction",
    "packages/signalbox/src/database/postgres/heartbeats.test.ts › a slow round trip never looks like a wrong clock",
  ],
  "A node has another cluster secret, other shared secrets, or no common link version": [
    "test/cluster/joining.long.test.ts › %s=%j is refused with one line",
    "packages/signalbox/src/database/postgres/node-session.test.ts › refuses a node that cannot talk to a running one, and accepts one that speaks both versions",
  ],
  "Several nodes start at once on a new or earlier database": [
    "test/cluster/upgrading.long.test.ts › of several nodes that start at once, one migrates the database, and all serve",
    "packages/signalbox/src/database/postgres/migrate-postgres.test.ts › several nodes at once apply each file once",
    "test/cluster/joining.long.test.ts › a node that waits for the migrations of another one says so, and starts when they are done",
  ],
  "A newer version has migrated the database": [
    "test/cluster/upgrading.long.test.ts › a compatible migration of a newer version does not disturb running nodes, and others still join",
    "test/cluster/upgrading.long.test.ts › a node refuses a database that only newer versions can use, with one line",
    "test/cluster/upgrading.long.test.ts › a running node leaves when only newer versions can use the database: not ready, 503, and no exit",
    "packages/signalbox/src/database/postgres/migrate-postgres.test.ts › applies a compatible migration beside nodes of an earlier version, and any other only without them",
  ],
  "The node of an instance with WebSockets at other nodes is killed or paused": [
    "test/cluster/sockets-follow.long.test.ts › the owner is killed",
    "test/cluster/sockets-follow.long.test.ts › the owner is paused until another node has its instances, and continues",
    "test/cluster/original-clients.long.test.ts › the clients stay connected and converge when the owner %s",
  ],
  "An instance with WebSockets is moved": [
    "test/cluster/sockets-move.long.test.ts › clients at every node follow an instance that is moved again and again while they call it",
    "test/cluster/sockets-move.long.test.ts › the original client %s stays connected while its instance is moved",
    "packages/signalbox/src/agents/connections/connection-group.test.ts › receive what was broadcast before they came, in order, and the state once",
    "packages/signalbox/src/agents/remote/sockets/restless-instance.test.ts › moves from node to node without a rest while links break: each message runs once, in order, and no hook runs again",
  ],
  "A node with WebSockets is killed": [
    "test/cluster/sockets-follow.long.test.ts › the node of the sockets is killed",
    "packages/signalbox/src/agents/remote/sockets/remote-sockets.test.ts › has its connections closed with 1006, once, and its sockets close when it notices",
  ],
  "A node with WebSockets is stopped": [
    "test/cluster/sockets-follow.long.test.ts › the owner stops: its own sockets are closed with 1012, and the others follow the instance",
    "test/browser/original-use-agent-cluster.long.test.ts › pages at both nodes stay connected when one of the nodes stops, and share the state",
  ],
  "The link between two nodes breaks for a moment": [
    "packages/signalbox/src/agents/remote/sockets/remote-sockets.test.ts › loses no state, doubles none, and runs no hook",
    "packages/signalbox/src/agents/remote/objects/socket-moves.test.ts › a link that breaks for a moment costs no frame, and runs nothing twice",
    "packages/signalbox/src/agents/remote/sockets/item-channel.test.ts › delivers every item once and in order, although the link breaks again and again",
  ],
  "The node of an instance is killed": [
    "test/cluster/agents-take-over.long.test.ts › another node takes over the instances of a killed one, with everything that was acknowledged",
    "packages/signalbox/src/agents/placement/cluster-placement.test.ts › work for a killed node waits until the node is declared dead, and then runs at another one",
    "packages/signalbox/src/agents/placement/cluster-placement.test.ts › work that cannot be sent is refused with 503 and Retry-After in the end",
  ],
  "A client asks a node that is cut off from PostgreSQL, and others are not": [
    "test/cluster/agents-cut-off.long.test.ts › what a node without PostgreSQL would run is refused as not run, and clients find another node",
    "packages/signalbox/src/agents/placement/cluster-placement.test.ts › a node that is cut off from PostgreSQL begins nothing, and refuses what it would run as something that was not run",
    "packages/signalbox/src/agents/placement/cluster-placement.test.ts › work waits for a PostgreSQL that restarts",
  ],
  "The node of an instance is paused or cut off, and continues": [
    "test/cluster/agents-take-over.long.test.ts › a paused owner neither writes nor answers when it wakes, and gets the instance back only by a claim",
    "packages/signalbox/src/agents/placement/two-nodes.test.ts › an answer that only read is not sent when the lease is old and another node has the instance",
    "packages/signalbox/src/agents/placement/two-nodes.test.ts › a node that joins again drops its instances: what has begun is refused, what waits is sent elsewhere",
  ],
  "An instance with due work loses its node, and no event asks for it": [
    "test/cluster/agents-take-over.long.test.ts › due work of a killed node runs although nobody asks",
    "packages/signalbox/src/agents/placement/orphans.test.ts › a node takes at once what the hash gives to it, and leaves the rest to the others for five seconds",
  ],
  "A node with instances is stopped": [
    "test/cluster/agents-take-over.long.test.ts › a node that is stopped hands its instances over, without an error",
    "packages/signalbox/src/agents/placement/two-nodes.test.ts › a draining node hands everything over, and is empty afterwards",
    "packages/signalbox/src/agents/placement/two-nodes.test.ts › the last node keeps its instances",
    "packages/signalbox/src/agents/placement/two-nodes.test.ts › what comes to a draining node later is handed over at the end",
    "packages/signalbox/src/engines/node-link/leave.test.ts › no call of a thousand under way is lost when the node leaves and closes its links",
  ],
  "One of several PostgreSQLs of `agents.stores` is away": [
    "packages/signalbox/src/engines/instance-store/shared/shared-hazards.test.ts › that cannot be reached delays only its own instances",
  ],
  "A node stops in the middle of a snapshot or a claim": [
    "packages/signalbox/src/engines/instance-store/shared/shared-hazards.test.ts › of a snapshot keeps no lock, and loses the instance",
  ],
  "The disk of a node is lost": [
    "test/cluster/agents-take-over.long.test.ts › a node with an empty disk has the instances as they were",
  ],
  "The connection to PostgreSQL is cut while an instance writes": [
    "packages/signalbox/src/engines/instance-store/shared/shared-store.test.ts › is acknowledged if PostgreSQL has it",
    "packages/signalbox/src/engines/instance-store/shared/shared-store.test.ts › is not sent again if PostgreSQL does not have it: the instance is fenced",
  ],
  "PostgreSQL is away": [
    "packages/signalbox/src/engines/instance-store/shared/shared-store.test.ts › that is stopped delays a write, and lets no instance wake without a lease",
    "packages/signalbox/src/agents/placement/two-nodes.test.ts › due work of an instance that its own node had to drop is woken there, and nobody has to ask for it",
  ],
  "A former owner writes a due time late": [
    "packages/signalbox/src/agents/placement/two-nodes.test.ts › a former owner changes nothing in the catalog any more",
  ],
  "A process that was alone starts as a node, with instances in its data folder": [
    "test/cluster/agents-import.long.test.ts › a node does not start on a folder with instances that were not imported, and has them after the import",
    "test/cluster/agents-import.long.test.ts › an import that is repeated changes nothing, and a damaged file is named and left out",
    "test/cluster/agents-import.long.test.ts › a folder is imported when no process uses it, once, with state, SQL and schedules",
  ],
};

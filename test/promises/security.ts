/** Each promise of SECURITY.md and the tests that hold us to it: `path › title`, where a title of `it.each` is its template. */
export const SECURITY: Readonly<Record<string, readonly string[]>> = {
  "A worker is open only if the configuration says so": [
    "test/worker/start.long.test.ts › access must be stated",
    "test/worker/webhooks.test.ts › agents of this package answer beside the worker's, and require a token",
    "test/worker/basic.test.ts › scheduled and email handlers run for the operator only",
  ],
  "A worker sees neither the server's secrets nor the dashboard's session": [
    "test/worker/basic.test.ts › variables come from the wrangler file and the process, without the server's secrets",
    "test/worker/basic.test.ts › the program sees the request as it was sent, without the dashboard's session",
    "test/worker/basic.test.ts › responses keep their headers and cookies, and cannot set the dashboard's session",
  ],
  "Tokens are stored as hashes": [
    "test/conformance/accounts-and-tokens.test.ts › a token is shown once, at creation, and only its hash is stored",
    "test/conformance/dashboard.test.ts › a session survives a restart, and only its hash is stored",
  ],
  "Files with secrets are readable by their owner only": [
    "test/conformance/running-it.test.ts › the first start creates a root token, prints it once and stores it in a file with mode 0600",
    "test/conformance/webhook-secret.test.ts › with the embedded database a secret is generated, survives restarts and is readable by its owner only",
    "test/hostile/stored-secrets.test.ts › is in no file, log, row, answer, error or metric; the master key is in one file of the owner",
    "test/hostile/provider-secret-headers.test.ts › stored values are encrypted: the database alone reveals nothing, and a copied row cannot be decrypted",
  ],
  "Every management write is recorded": [
    "test/hostile/audit-coverage.test.ts › every writing operation is recorded, whoever calls it",
    "test/conformance/audit-log.test.ts › are in no entry: tokens, provider keys, secret headers, login codes, keys in error texts",
    "test/conformance/audit-log.test.ts › needs its own permission, in the own account, and is closed to tokens of a gateway",
    "test/conformance/audit-log.test.ts › a changed or removed row is noticed",
    "test/conformance/audit-log.test.ts › of a request that only reads has no result: what it showed is data of its caller",
    "test/cluster/watching.test.ts › writes at all nodes at the same time form one chain, which every node shows",
    "packages/signalbox/src/audit/hide-secrets.test.ts › a secret that has a name is hidden everywhere in the entry, also before it and in later texts",
  ],
  "Secrets are not logged": [
    "packages/signalbox/src/telemetry/logger.test.ts › logs no credential, neither as a Secret nor under a known key or header",
    "packages/signalbox/src/core/secret.test.ts › prints, serialises and inspects as [secret]",
    "test/conformance/gateway-authentication.test.ts › no credential is logged",
    "test/conformance/gateway-providers.test.ts › a stored key appears only in the upstream request",
  ],
  "Connections are closed when their credential ends": [
    "test/hostile/ended-credentials.test.ts › open WebSockets of a revoked token close with 4401, which is final, and others stay open",
    "test/hostile/ended-credentials.test.ts › event streams of a revoked token end completely and contain no later events",
    "test/hostile/ended-credentials.test.ts › frames that were received but not started when the token was revoked are not run",
    "test/hostile/ended-credentials.test.ts › sockets and streams of an expired token end within a second, also if the clock is set ahead",
    "test/hostile/ended-credentials.test.ts › a logout ends the session's sockets and streams; other sessions keep theirs",
  ],
  "A revocation is true at every node when it is answered": [
    "test/cluster/revocation.long.test.ts › is refused at every other node, every time",
    "test/cluster/settings.test.ts › %s is true at the other",
    "test/cluster/live-connections.test.ts › a token that is %s",
    "test/cluster/live-connections.test.ts › a session that is logged out",
    "test/cluster/paused-node.long.test.ts › a paused node holds up a revocation until it is declared dead, and then refuses the token before it answers",
    "test/cluster/paused-node.long.test.ts › messages of a revoked token that arrived during the pause are not handled",
  ],
  "Nodes of a cluster prove that they have its secret": [
    "test/cluster/joining.long.test.ts › %s=%j is refused with one line",
    "test/cluster/joining.long.test.ts › the database has no secret of a node",
  ],
  "A token cannot grant more than it has": [
    "test/hostile/token-bounds.test.ts › a created token expires no later than its creator; no expiry is the latest",
    "test/hostile/token-bounds.test.ts › a created token has no permission that its creator lacks, also by the gateway's own path",
    "test/hostile/token-bounds.test.ts › a created token is bound to the same gateway, which must be named",
    "test/hostile/token-bounds.test.ts › a token may list but not revoke a token with more permissions",
    "test/hostile/virtual-key-bounds.test.ts › a token creates tokens within its own limits only, by both paths",
    "test/hostile/virtual-key-bounds.test.ts › a token widens neither itself nor a token it created",
    "test/hostile/virtual-key-bounds.test.ts › creates no token that can run calls, however limited",
  ],
  "A token of one gateway reaches that gateway only": [
    "test/hostile/token-bounds.test.ts › every operation on another gateway, on the account or of another area is 403",
    "test/conformance/gateway-authentication.test.ts › a token that is invalid (%s) gets the same refusal",
    "packages/signalbox/src/accounts/token-bounds.test.ts › ignores stored permissions of a bound token that do not apply to gateways",
  ],
  "Wrong credentials are throttled by address": [
    "test/hostile/wrong-credentials.test.ts › repeated wrong tokens at the management API get 429 with Retry-After; valid tokens never do",
    "test/hostile/wrong-credentials.test.ts › wrong logins and login codes get 429 earlier, and a valid login still works",
  ],
  "The dashboard's session is a cookie for its own pages": [
    "test/conformance/dashboard.test.ts › the session cookie is HttpOnly and SameSite=Strict",
    "test/conformance/dashboard.test.ts › a request from %s may make no change",
    "test/conformance/dashboard.test.ts › a page of another origin reads nothing",
    "test/conformance/dashboard.test.ts › a Host that is not this server's is refused, which prevents DNS rebinding",
  ],
  "A token works in its own account": [
    "test/hostile/permission-matrix.test.ts › the operation states who may call it and what a token bound to a gateway reaches",
    "test/hostile/permission-matrix.test.ts › exactly the callers of the rule are admitted, and the others get a reason",
  ],
  "An instance belongs to one account": [
    "test/hostile/account-isolation.test.ts › a token reaches the instance of its own account, over HTTP, calls and WebSockets",
    "test/hostile/account-isolation.test.ts › a token that names another account is refused, by parameter or header, whether or not the account exists",
    "test/hostile/account-isolation.test.ts › the root token uses the account default unless it names another existing account",
    "test/hostile/account-isolation.test.ts › an agent knows its account and calls instances of it",
    "test/hostile/account-isolation.test.ts › a source delivers to instances of its account, also test events and replays",
    "test/hostile/account-isolation.test.ts › tag changes are sent to the instance of the tags' account",
  ],
  "Tags, gateways, providers and stored calls belong to one account": [
    "test/conformance/tags-writing.test.ts › one account's tags are not visible in another",
    "test/conformance/tags-strictness.test.ts › no response distinguishes ids of other accounts' resources from unknown ids",
    "test/conformance/gateway-providers.test.ts › the providers of one account are not visible to another",
    "test/conformance/gateway-logs.test.ts › the permission, the gateway and the account are checked",
  ],
  "Public agents are those of `default`": [
    "test/hostile/account-isolation.test.ts › callers without a token use the account default; another account needs a credential",
  ],
  "The default address is loopback": [
    "test/conformance/running-it.test.ts › --json prints one object with url and pid when the server accepts requests",
    "test/conformance/exposure.test.ts › %s: metrics and description are public, and no warning is logged",
    "test/conformance/exposure.test.ts › %s: the URL can be opened, and a warning names each gateway without authentication",
    "test/conformance/exposure.test.ts › public agents cause a warning; a gateway with authentication does not",
  ],
  "`/metrics` and `/openapi.json` need a token on addresses that other machines can reach": [
    "test/conformance/exposure.test.ts › metrics need the root token or gateway.read of the operator's account; the description needs any token",
    "test/conformance/exposure.test.ts › --metrics-public makes only the metrics public, and the start reports it",
  ],
  "A request that a proxy has forwarded is not local": [
    "test/conformance/exposure.test.ts › what a proxy has forwarded needs a token, unless a trusted proxy names a client on this machine",
  ],
  "A client is known by its own address behind trusted proxies": [
    "test/conformance/exposure.test.ts › wrong tokens are counted by the client's address, not by the proxy's",
    "test/deploy/proxies.long.test.ts › the client's own address arrives, whatever it claims",
  ],
  "A certificate is used only if it fits its key and has not expired": [
    "packages/signalbox/src/engines/http-server/server-certificate.test.ts › an expired certificate does not replace the one in use",
    "test/conformance/tls.test.ts › serves new connections; open ones go on; files that do not fit together are refused and change nothing",
    "test/conformance/tls.test.ts › TLS 1.1, plain HTTP and noise end their own connection only",
    "test/conformance/tls.test.ts › the server does not start, says why, and creates no database",
  ],
  "Commands on the machine of the server trust exactly its certificate": [
    "test/conformance/tls.test.ts › trust the certificate that the data folder names, whatever its name and its issuer",
    "test/conformance/tls.test.ts › with --url, a certificate that is not trusted is refused with a hint",
  ],
  "The administration can have its own address": [
    "test/conformance/exposure.test.ts › each address serves its own routes, and both report their health",
    "test/conformance/exposure.test.ts › sessions are valid on the administration address, agents included, and not on the traffic address",
  ],
  "Requests are limited": [
    "test/conformance/listener.test.ts › oversized headers are answered 431",
    "test/conformance/listener.test.ts › headers that do not arrive in time are answered 408",
    "test/conformance/listener.test.ts › a body that does not arrive in time is answered 408",
    "test/conformance/listener.test.ts › a declared length over the limit is answered 413 before the body is sent",
    "test/conformance/listener.test.ts › a body without a length is answered 413 when it exceeds the limit",
    "test/conformance/listener.test.ts › connections over the limit are refused, and accepted again when one closes",
  ],
  "Bodies of gateway calls and of webhooks share memory budgets": [
    "test/hostile/gateway-memory.test.ts › bodies beyond the budget are refused with 503 and Retry-After while other callers hold it",
    "test/hostile/gateway-memory.test.ts › stalled bodies are cut off with 408 and their memory is released",
    "test/conformance/webhook-overload.test.ts › answers 503 with Retry-After while bodies of deliveries in progress use the memory, and accepts deliveries again afterwards",
  ],
  "A request has one host": [
    "test/hostile/hosts-and-upgrades.test.ts › a second Host header is refused on every path, with and without a session",
    "test/hostile/hosts-and-upgrades.test.ts › an unknown host is not repeated in any response",
    "test/hostile/hosts-and-upgrades.test.ts › an upgrade to another protocol than WebSocket is ignored, and the request is answered normally",
  ],
  "A client that does not read its responses is disconnected": [
    "test/hostile/pipelining.test.ts › the connection of a client that does not read responses (%s) is closed, and no other",
    "test/hostile/pipelining.test.ts › pipelined requests are answered in order, up to the limit of pending requests",
  ],
  "Refusals by the listener have the standard form": [
    "test/hostile/listener-refusals.test.ts › an unknown expectation is refused with the usual response: %s",
    "test/hostile/listener-refusals.test.ts › a request without a host is refused with the usual response: %s",
    "test/hostile/listener-refusals.test.ts › a request line without a version is refused: %s",
    "test/hostile/listener-refusals.test.ts › an unsupported WebSocket version is answered with the supported ones",
  ],
  "A refused WebSocket cannot do harm": [
    "test/hostile/websocket-bytes.test.ts › a refused socket that sends %s is closed, and the process stays alive",
    "test/hostile/websocket-bytes.test.ts › a refused socket may send %s together with its handshake",
    "test/hostile/websocket-bytes.test.ts › a refused socket that neither closes nor reads, and never stops sending, is closed",
    "test/hostile/websocket-bytes.test.ts › refused sockets cost others nothing: of many silent ones the oldest are closed first",
    "test/hostile/websocket-bytes.test.ts › an accepted socket that sends %s is closed, and others stay open",
    "test/hostile/left-connections.test.ts › the connection of %s ends with its client, so that there is room for others",
    "test/hostile/left-connections.test.ts › a client that stays after the refusal of its handshake is cut",
  ],
  "Paths are split before they are decoded, and decoded once": [
    "test/conformance/listener.test.ts › dot segments and encoded slashes are plain names",
    "test/conformance/listener.test.ts › a target that is not UTF-8 after decoding or contains NUL is refused with 400",
  ],
  "Conditions of routes have a budget": [
    "test/hostile/route-patterns.test.ts › patterns that are too large are refused when they are saved and when they are tried",
    "test/hostile/route-patterns.test.ts › who may only read a gateway tries its routes as they were saved",
    "test/hostile/route-patterns.test.ts › a route of an earlier version whose patterns are too large stays listed, and its calls are refused with the reason",
    "packages/signalbox/src/gateway/routes/condition.test.ts › the larger the patterns of a route are together, the less of a text they search",
    "packages/signalbox/src/gateway/routes/condition.test.ts › values without end are compared in part",
  ],
  "A program sees the path that was checked": [
    "test/conformance/agents-calls.test.ts › an authorize hook sees the path of the instance that is reached, or the request is refused",
    "test/worker/basic.test.ts › a path that would be another one in the program's URL is refused",
  ],
  "Only files of the site are served for a worker": [
    "packages/signalbox/src/worker/assets/assets.test.ts › what is not part of the site is not found: control files, server code, names with a dot, what .assetsignore lists",
    "packages/signalbox/src/worker/assets/assets.test.ts › no path leads out of the folder",
    "packages/signalbox/src/worker/assets/assets.test.ts › the worker is asked before or after the files, as run_worker_first says",
    "packages/signalbox/src/worker/assets/ignored-files.test.ts › %j ignores %j and not %j",
  ],
  "Names from requests never become file names": [
    "test/conformance/agents-instances.test.ts › unusual names are safe and distinct",
    "packages/signalbox/src/dashboard/serve-files.test.ts › serves only files of the build with a known type",
  ],
  "Unknown parameters are refused by name": [
    "test/hostile/token-bounds.test.ts › every operation refuses an unknown parameter by name and never widens its result",
  ],
  "A refused request creates no instance": [
    "test/hostile/unauthenticated-callers.test.ts › (%s) creates no instance",
    "test/hostile/unauthenticated-callers.test.ts › a missing instance is not found and not created",
    "test/hostile/unauthenticated-callers.test.ts › a WebSocket may wait for a missing instance, is greeted normally, and receives its first event",
    "test/hostile/unauthenticated-callers.test.ts › callers without a token create instances at a limited rate; tokens and signed events are not limited",
  ],
  "Agents' SQL cannot use names of the runtime": [
    "packages/signalbox/src/engines/instance-store/statement-guard.test.ts › cannot be given to a temporary table by renaming",
    "test/hostile/fuzzing.long.test.ts › a short run finds no failure",
  ],
  "Operators' SQL is limited": [
    "packages/signalbox/src/agents/management/sql-console.test.ts › run two at a time; eight wait without a copy, and another one is refused with a retry-after",
    "packages/signalbox/src/engines/instance-store/read-only-query.test.ts › is killed when its process uses too much memory, with an error that says so",
    "packages/signalbox/src/engines/instance-store/read-only-query.test.ts › is killed when it takes too long",
    "packages/signalbox/src/engines/instance-store/read-only-query.test.ts › stops at the limits of rows and bytes, and cannot create a larger value",
    "test/hostile/sql-console.test.ts › a result with too many bytes is truncated and marked as truncated",
  ],
  "The command line removes control characters from foreign text": [
    "test/hostile/terminal-output.test.ts › tables, single entries and stored bodies are printed without control characters, one line each",
    "test/hostile/terminal-output.test.ts › --json prints the exact values",
  ],
  "Parsers are fuzzed": [
    "test/hostile/fuzzing.long.test.ts › a short run finds no failure",
    "test/hostile/fuzzing.long.test.ts › kept cases cause no failure",
  ],
  "A token calls only what its rules allow": [
    "test/hostile/token-models.test.ts › %s is refused",
    "test/hostile/token-models.test.ts › a body that cannot be read is refused",
    "test/hostile/token-models.test.ts › every step of the universal endpoint is checked, and the message names what is allowed",
    "test/hostile/token-models.test.ts › another provider or kind of call is refused",
    "packages/signalbox/src/core/glob.test.ts › matches what the regular expression of the pattern matches",
  ],
  "A Signalbox token is not forwarded": [
    "test/hostile/token-places.test.ts › a token in $name identifies the call and stays here",
    "test/hostile/token-places.test.ts › a wrong, revoked or foreign token in $name is refused",
    "test/hostile/token-places.test.ts › two tokens in two places of a provider's key are refused, the same token twice is not",
    "test/hostile/gateway-forwarding.test.ts › in %s: 401, and nothing is sent upstream",
    "test/conformance/gateway-authentication.test.ts › gateway headers and cookies are not sent upstream; the provider's credential is",
  ],
  "Headers about the caller are not forwarded": [
    "test/hostile/gateway-forwarding.test.ts › %s does not reach the provider",
  ],
  "A provider key belongs to the accounts that the operator names": [
    "test/hostile/provider-key-grants.test.ts › a variable is available to the accounts that the operator names, and to no other",
    "test/hostile/provider-key-grants.test.ts › a variable without an entry is available to the account default",
    "test/hostile/provider-key-grants.test.ts › the key of a custom provider is sent to the origin that the operator named, and nowhere else",
  ],
  "Cached responses are shared only between equal requests": [
    "test/hostile/gateway-cache-scopes.test.ts › callers that differ in %s do not share a response",
    "test/hostile/gateway-cache-scopes.test.ts › callers that differ in the query do not share a response",
    "test/hostile/gateway-cache-scopes.test.ts › calls with different stored keys do not share a response",
    "test/hostile/gateway-cache-scopes.test.ts › calls that differ only in user agent or trace headers share a response",
  ],
  "A POST is not sent twice automatically": [
    "test/hostile/gateway-provider-responses.test.ts › a POST on a kept connection that dies is not repeated: the caller gets a 502",
    "test/hostile/gateway-provider-responses.test.ts › with %s the request is repeated",
    "packages/signalbox/src/engines/relay/connection-reuse.test.ts › sends a %s once when the server closes the connection, because the server may have executed it",
    "packages/signalbox/src/engines/relay/connection-reuse.test.ts › detects before writing that the server closed an idle connection (%s), and opens a new one",
  ],
  "A caller's own key stays with its provider": [
    "test/conformance/gateway-doors.test.ts › gives the caller's own key to the provider that the caller names, in the provider's header",
    "test/conformance/gateway-doors.test.ts › does not give a key to a provider that an alias chose",
    "test/conformance/gateway-translation.test.ts › has the caller's own key in the provider's header, when the caller names the provider",
  ],
  "A stored key goes to hosts of the provider or of the configuration": [
    "test/conformance/gateway-cloud-providers.test.ts › never sends a stored key to a resource that the caller names",
    "test/conformance/gateway-cloud-providers.test.ts › sends a stored key to the configured resource, whatever the path names",
    "test/conformance/gateway-cloud-providers.test.ts › signs a call of a door, and has the model in the path only",
    "packages/signalbox/src/gateway/providers/google-access-token.test.ts › exchanges a signed assertion at the configured address",
  ],
  "Custom providers and outgoing webhooks cannot reach private addresses": [
    "packages/signalbox/src/engines/ip-address/ip-address.test.ts › classifies addresses of %s as private",
    "packages/signalbox/src/engines/ip-address/ip-address.test.ts › classifies an IPv4 address the same in IPv4 and in IPv6 notation",
    "packages/signalbox/src/engines/ip-address/ip-address.test.ts › refuses a name that resolves to %s %s",
    "packages/signalbox/src/engines/relay/upstream-client.test.ts › refuses addresses that are not public where only public ones are allowed",
    "test/conformance/gateway-providers.test.ts › only https and public addresses are accepted unless the operator allows others",
    "test/conformance/webhook-outgoing.test.ts › webhooks to private addresses are refused unless the operator allows them",
  ],
  "A response of a program ends where its body ends": [
    "test/hostile/untrusted-responses.test.ts › an agent's response with %s is framed by the server",
    "test/worker/hostile.test.ts › a response of the program with %s is framed by the server",
    "test/worker/hostile.test.ts › the length of a body that is passed on is kept, and that of a changed one is not",
  ],
  "Internal errors reveal nothing": [
    "test/conformance/agents-calls.test.ts › an exception in onRequest is answered 500 without detail",
    "test/conformance/agents-calls.test.ts › the response to a failed call has the error's message and not its stack",
    "test/conformance/webhook-agent.test.ts › a failure (%s) is answered 500 without a reason, and nothing is counted",
    "test/conformance/listener.test.ts › every response has x-request-id, which repeats a valid id of the caller",
  ],
  "Responses of providers and agents cannot act as pages of the dashboard": [
    "test/browser/foreign-pages.test.ts › a page of %s runs no script in the origin of a logged-in dashboard",
    "test/hostile/untrusted-responses.test.ts › every response of the gateway and of agents has the headers that prevent rendering",
    "test/hostile/untrusted-responses.test.ts › provider headers that act for this origin are dropped, and security policies are replaced",
    "test/hostile/untrusted-responses.test.ts › an agent cannot set the dashboard's session cookie or act for the origin",
  ],
  "Agents do not see the service's own secrets": [
    "test/conformance/agents-modules.test.ts › agents see the environment without the secrets of the service",
  ],
  "An agent's uncaught error does not end the process": [
    "test/faults/uncaught-errors.test.ts › the server continues after uncaught errors of every kind in an agent and counts them",
    "packages/signalbox/src/telemetry/uncaught-errors.test.ts › logs no other properties of an error, and truncates long text",
    "packages/signalbox/src/telemetry/uncaught-errors.test.ts › limits the log lines per minute, logs the number of the others, and counts all errors",
  ],
  "Forged deliveries write a few rows of the inspector's list and nothing else": [
    "test/conformance/webhook-intake.test.ts › forged deliveries create no instance, write a few rows of the list and reveal nothing",
    "packages/signalbox/src/webhooks/rejected-request.test.ts › lists a burst, then five a second, and counts the others",
    "packages/signalbox/src/webhooks/rejected-request.test.ts › is described by names and the start of its signature, and not by the values of its headers",
    "packages/signalbox/src/webhooks/rejected-request.test.ts › of a header that may be the secret itself, only the length is kept",
    "packages/signalbox/src/webhooks/webhook-storage.test.ts › of each source at most a hundred rejected deliveries are kept, and they displace no other",
  ],
  "Errors of agents are for operators": [
    "test/conformance/webhook-failures.test.ts › tells operators why, with the stack, and the sender nothing",
  ],
  "Nothing happens before the signature is verified": [
    "test/conformance/webhook-intake.test.ts › forged deliveries create no instance, write a few rows of the list and reveal nothing",
    "test/conformance/webhook-intake.test.ts › a signature that is %s is 401, whether or not the entity exists",
  ],
  "Entities never share an instance": [
    "packages/signalbox/src/webhooks/entity-claims.test.ts › no two entities share an instance, whatever their names and the order in which they arrive",
    "test/conformance/webhook-entities.test.ts › a repository and an organisation with similar names have separate instances",
    "test/conformance/webhook-entities.test.ts › ids of a signed body that look alike have separate instances",
  ],
  "A delivery is for the entity that its sender names": [
    "test/conformance/webhook-entities.test.ts › the entity in the URL must match the signed body of /webhooks/%s",
    "test/conformance/webhook-entities.test.ts › 400, and no instance is created: %s",
  ],
  "Schemes with a signed time refuse old deliveries": [
    "test/conformance/webhook-intake.test.ts › stripe: an old or future timestamp is 401",
    "test/hostile/webhook-replays.test.ts › a captured delivery cannot be sent with another id, another time, to another entity, or late",
  ],
  "A webhook secret is generated on the embedded database only": [
    "test/conformance/webhook-secret.test.ts › with the embedded database a secret is generated, survives restarts and is readable by its owner only",
    "test/conformance/webhook-secret.test.ts › with PostgreSQL the secret must be set: otherwise every delivery is 401, and the log names the variable",
  ],
  "Secret headers of custom providers are encrypted": [
    "test/hostile/provider-secret-headers.test.ts › stored values are encrypted: the database alone reveals nothing, and a copied row cannot be decrypted",
    "test/hostile/provider-secret-headers.test.ts › a changed base URL removes the stored values, and the response says so",
    "test/hostile/provider-secret-headers.test.ts › values stored in plain text by an earlier version are encrypted at the next start",
  ],
  "Provider keys are stored encrypted": [
    "test/hostile/stored-secrets.test.ts › is in no file, log, row, answer, error or metric; the master key is in one file of the owner",
    "test/hostile/stored-secrets.test.ts › cannot be moved to another owner in the database",
    "test/hostile/stored-secrets.test.ts › does not follow a custom provider to another address",
    "test/conformance/gateway-providers.test.ts › a stored key appears only in the upstream request",
  ],
  "A kill during the rotation of the master key loses no provider key": [
    "test/faults/master-key-rotation.long.test.ts › every stored key can be used after `kill -9` during rotations, and old master keys disappear",
  ],
  "A stored provider key needs a token": [
    "test/hostile/stored-secrets.test.ts › is refused without a token while the gateway allows no anonymous keys",
  ],
};

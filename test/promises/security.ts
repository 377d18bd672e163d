/** Each promise of SECURITY.md and the tests that hold us to it: `path › title`, where a title of `it.each` is its template. */
export const SECURITY: Readonly<Record<string, readonly string[]>> = {
  "Tokens are stored as hashes": [
    "test/conformance/accounts-and-tokens.test.ts › are shown once, at creation, and never stored as text",
    "test/conformance/dashboard.test.ts › survives a restart, and only its hash is stored",
  ],
  "Files with secrets are readable by their owner only": [
    "test/conformance/running-it.test.ts › makes a root token, prints it once and keeps it in a file that only the owner can read",
    "test/conformance/webhook-secret.test.ts › on the embedded database one is made, kept over restarts, and readable by its owner only",
    "test/hostile/provider-secret-headers.test.ts › stores them sealed: the database alone gives nothing away, and a copied row does not open",
  ],
  "Secrets are not logged": [
    "packages/signalbox/src/telemetry/logger.test.ts › shows no credential, whether it comes as a Secret, a known key or a header",
    "packages/signalbox/src/core/secret.test.ts › never shows its text by accident",
    "test/conformance/gateway-authentication.test.ts › logs no credential",
    "test/conformance/gateway-cache-and-limits.test.ts › appear nowhere but upstream",
  ],
  "A credential ends what it opened": [
    "test/hostile/ended-credentials.test.ts › loses its open WebSockets with 4401, which is final, and only its own",
    "test/hostile/ended-credentials.test.ts › loses its event streams, which end as a whole and tell nothing that happened afterwards",
    "test/hostile/ended-credentials.test.ts › has nothing done that its socket had sent but that had not begun",
    "test/hostile/ended-credentials.test.ts › loses sockets and streams within a second, also when the clock jumps",
    "test/hostile/ended-credentials.test.ts › loses its sockets and streams when it is logged out, and other sessions keep theirs",
  ],
  "A token hands out no more than it holds": [
    "test/hostile/token-bounds.test.ts › ends no later than the token itself, and no end is the latest of all",
    "test/hostile/token-bounds.test.ts › holds no permission the token lacks, by the gateway's own path either",
    "test/hostile/token-bounds.test.ts › is bound to the same gateway, which has to be named",
    "test/hostile/token-bounds.test.ts › a token revokes none that holds more than itself, but may list it",
  ],
  "A token of one gateway reaches that gateway only": [
    "test/hostile/token-bounds.test.ts › reaches nothing else: every operation of the interface on another gateway, account-wide or of another area is 403",
    "test/conformance/gateway-authentication.test.ts › answers a token that is %s with the same refusal",
    "packages/signalbox/src/accounts/token-bounds.test.ts › a token of one gateway that was stored with other permissions has lost them",
  ],
  "Wrong credentials are throttled by address": [
    "test/hostile/wrong-credentials.test.ts › wrong tokens at the management interface get 429 with Retry-After after a while, right ones never",
    "test/hostile/wrong-credentials.test.ts › wrong logins and login codes get 429 sooner, and a right login still works",
  ],
  "The dashboard's session is a cookie for its own pages": [
    "test/conformance/dashboard.test.ts › is a cookie that scripts cannot read and other sites cannot send",
    "test/conformance/dashboard.test.ts › may change nothing from %s",
    "test/conformance/dashboard.test.ts › reads nothing for a page of another origin",
    "test/conformance/dashboard.test.ts › is refused under a name that is not this server's, as DNS rebinding would need",
  ],
  "A token works in its own account": [
    "test/hostile/permission-matrix.test.ts › states who may call it and what a token bound to a gateway reaches",
    "test/hostile/permission-matrix.test.ts › lets in exactly those its rule names, and says to the others why",
  ],
  "An instance belongs to one account": [
    "test/hostile/account-walls.test.ts › reaches its own account's instance of a name, over HTTP, calls and WebSockets",
    "test/hostile/account-walls.test.ts › is refused when it names another account, by parameter or header, known or not",
    "test/hostile/account-walls.test.ts › means default unless it names another account that exists",
    "test/hostile/account-walls.test.ts › know their account, and call instances of it",
    "test/hostile/account-walls.test.ts › of a source reach its account's instances, also as test events and replays",
    "test/hostile/account-walls.test.ts › about changed tags go to the instance of the tags' account",
  ],
  "Tags, gateways, providers and stored calls are their account's own": [
    "test/conformance/tags-writing.test.ts › never shows one account's tags in another",
    "test/conformance/tags-strictness.test.ts › and ids of other accounts' resources are told from ids that do not exist by no answer",
    "test/conformance/gateway-forwarding.test.ts › keeps one account's providers from another",
    "test/conformance/gateway-logs.test.ts › needs the right permission, gateway and account",
  ],
  "Public agents are those of `default`": [
    "test/hostile/account-walls.test.ts › strangers mean default; naming another account takes a credential for it",
  ],
  "The default address is loopback": [
    "test/conformance/running-it.test.ts › prints one JSON object with url and pid in --json mode once it serves",
    "test/conformance/exposure.test.ts › %s: metrics and description are open, and nothing is warned of",
    "test/conformance/exposure.test.ts › %s: the url can be opened, and each open gateway is warned of",
    "test/conformance/exposure.test.ts › a gateway with authentication is not warned of, public agents are",
  ],
  "`/metrics` and `/openapi.json` need a token where other machines reach them": [
    "test/conformance/exposure.test.ts › metrics need the root token or gateway.read of the operator's account, the description any token",
    "test/conformance/exposure.test.ts › --metrics-public opens the metrics and nothing else, and the start says what is open",
  ],
  "The administration can have an address of its own": [
    "test/conformance/exposure.test.ts › each address serves its part, and both say that they are healthy",
    "test/conformance/exposure.test.ts › sessions count on the administration's address, agents included, and not where traffic goes",
  ],
  "Requests are limited": [
    "test/conformance/listener.test.ts › with oversized headers is answered with 431",
    "test/conformance/listener.test.ts › are cut with 408 when the headers do not arrive in time",
    "test/conformance/listener.test.ts › are cut with 408 when the body does not arrive in time",
    "test/conformance/listener.test.ts › are refused with 413 from the declared length, before the body is sent",
    "test/conformance/listener.test.ts › are refused with 413 while a body without a length grows too large",
    "test/conformance/listener.test.ts › over the limit are turned away, and the next one is served when one leaves",
  ],
  "Bodies of gateway calls and of webhooks share memory budgets": [
    "test/hostile/gateway-memory.test.ts › refuses bodies beyond the budget with 503 and Retry-After, while callers hold on to theirs",
    "test/hostile/gateway-memory.test.ts › cuts bodies that do not progress with 408 and takes their memory back",
    "test/conformance/webhook-overload.test.ts › answers 503 with Retry-After while bodies of deliveries in progress use the memory, and accepts deliveries again afterwards",
  ],
  "A request has one host": [
    "test/hostile/hosts-and-upgrades.test.ts › and a second Host header is refused on every path, with a session or without",
    "test/hostile/hosts-and-upgrades.test.ts › and a host that is none of ours is repeated nowhere",
    "test/hostile/hosts-and-upgrades.test.ts › to anything but a WebSocket is ignored, and the request is answered as any other",
  ],
  "A client that does not read its answers is cut off": [
    "test/hostile/pipelining.test.ts › end the connection of a client that does not read the answers (%s), and nobody else's",
    "test/hostile/pipelining.test.ts › are answered one after the other, as many as may be under way",
  ],
  "What the listener refuses looks like every other refusal": [
    "test/hostile/refusals-of-the-listener.test.ts › an expectation that is not met is refused like everything else: %s",
    "test/hostile/refusals-of-the-listener.test.ts › a request without a host is refused like everything else: %s",
    "test/hostile/refusals-of-the-listener.test.ts › is refused: %s",
    "test/hostile/refusals-of-the-listener.test.ts › names the versions there are to a peer of another one",
  ],
  "A refused WebSocket can send anything": [
    "test/hostile/websocket-bytes.test.ts › may send %s: the process lives and the socket is cut",
    "test/hostile/websocket-bytes.test.ts › may send %s together with its handshake",
    "test/hostile/websocket-bytes.test.ts › is cut although it neither says goodbye nor reads, and although it never stops talking",
    "test/hostile/websocket-bytes.test.ts › costs its neighbours nothing: of many that say nothing, the oldest are cut first",
    "test/hostile/websocket-bytes.test.ts › may send %s: it is cut, the others live",
  ],
  "Paths are split before they are decoded, once": [
    "test/conformance/listener.test.ts › treat dot segments and encoded slashes as plain names",
    "test/conformance/listener.test.ts › that do not decode to UTF-8 or hold a NUL are refused with 400",
  ],
  "Names from requests never become file names": [
    "test/conformance/agents-instances.test.ts › that look dangerous are safe and distinct",
    "packages/signalbox/src/dashboard/serve-files.test.ts › serves known files only: no hidden file, no other kind, no path out of the folder",
  ],
  "Unknown parameters are refused by name": [
    "test/hostile/token-bounds.test.ts › is refused by every operation, by name, and never widens an answer",
  ],
  "A refused request creates no instance": [
    "test/hostile/strangers-at-the-doors.test.ts › (%s) creates nothing",
    "test/hostile/strangers-at-the-doors.test.ts › finds no instance that is not there, and makes none",
    "test/hostile/strangers-at-the-doors.test.ts › may wait for one by WebSocket, greeted like any other, and sees its first event",
    "test/hostile/strangers-at-the-doors.test.ts › strangers create what they name at a rate, holders of a token and signed events without one",
  ],
  "Agents' SQL cannot take a name of the runtime's": [
    "packages/signalbox/src/engines/instance-store/statement-guard.test.ts › are not reached by renaming a temporary table either",
    "test/hostile/fuzzing.test.ts › finds nothing in a short run",
  ],
  "Operators' SQL is bounded": [
    "packages/signalbox/src/agents/management/sql-console.test.ts › run two at a time; eight wait without a copy, and one more is refused with a time to come back",
    "packages/signalbox/src/engines/instance-store/read-only-query.test.ts › is killed when its process grows too large, and says so",
    "packages/signalbox/src/engines/instance-store/read-only-query.test.ts › is killed when it takes too long",
    "packages/signalbox/src/engines/instance-store/read-only-query.test.ts › stops at its limits of rows and bytes, and cannot make a value that is larger",
    "test/hostile/sql-console.test.ts › a result of many bytes is cut, and says so",
  ],
  "The command line prints text from strangers without control characters": [
    "test/hostile/terminal-output.test.ts › tables, single entries and stored bodies are shown without control characters and on their own lines",
    "test/hostile/terminal-output.test.ts › --json stays exact",
  ],
  "Parsers are fuzzed": [
    "test/hostile/fuzzing.test.ts › finds nothing in a short run",
    "test/hostile/fuzzing.test.ts › holds what broke it once",
  ],
  "A Signalbox token is not forwarded": [
    "test/hostile/gateway-forwarding.test.ts › in %s: 401, and nothing is sent",
    "test/conformance/gateway-authentication.test.ts › never sends gateway headers or cookies upstream, and always the provider's credential",
  ],
  "Headers about the caller are not forwarded": [
    "test/hostile/gateway-forwarding.test.ts › %s does not reach the provider",
  ],
  "A provider key belongs to the accounts the operator names": [
    "test/hostile/provider-key-grants.test.ts › gives a variable to the accounts that the operator names, and to nobody else",
    "test/hostile/provider-key-grants.test.ts › keeps a variable without an entry for the account default",
    "test/hostile/provider-key-grants.test.ts › sends the key of a custom provider to the origin that the operator named, and nowhere else",
  ],
  "Cached answers are shared only between equal requests": [
    "test/hostile/gateway-cache-scopes.test.ts › callers that differ in %s do not share an answer",
    "test/hostile/gateway-cache-scopes.test.ts › callers that differ in the query do not share an answer",
    "test/hostile/gateway-cache-scopes.test.ts › calls with different stored keys do not share an answer",
    "test/hostile/gateway-cache-scopes.test.ts › calls that differ only in who sent them and for which trace share one",
  ],
  "A POST is not sent twice by itself": [
    "test/hostile/gateway-provider-answers.test.ts › a POST under which a kept connection dies is not sent twice: the caller gets a 502 and decides",
    "test/hostile/gateway-provider-answers.test.ts › with %s it is sent again",
    "packages/signalbox/src/engines/relay/connection-reuse.test.ts › sends a %s once when the server dies under it, for it may have done the work",
    "packages/signalbox/src/engines/relay/connection-reuse.test.ts › notices before it writes that an idle connection was closed in the meantime (%s), and uses a new one",
  ],
  "Custom providers and outgoing webhooks cannot reach private addresses": [
    "packages/signalbox/src/engines/ip-address/public-host.test.ts › judges addresses of %s as not public",
    "packages/signalbox/src/engines/ip-address/public-host.test.ts › judges an IPv4 address the same however it is written",
    "packages/signalbox/src/engines/ip-address/public-host.test.ts › refuses a name that resolves to %s %s",
    "packages/signalbox/src/engines/relay/upstream-client.test.ts › refuses addresses that are not public where only public ones are allowed",
    "test/conformance/gateway-forwarding.test.ts › takes only https and public addresses unless the operator allows others",
    "test/conformance/webhook-outgoing.test.ts › to private addresses are refused unless the operator allows them",
  ],
  "Internal errors say nothing": [
    "test/conformance/agents-calls.test.ts › that make the agent throw are answered 500 without detail",
    "test/conformance/agents-calls.test.ts › carry an error's message but not its stack",
    "test/conformance/webhook-agent.test.ts › that fails (%s) answers 500 without a word about why, and counts nothing",
    "test/conformance/listener.test.ts › carry x-request-id, and repeat the caller's when it is harmless",
  ],
  "Answers of providers and agents are no pages of the dashboard": [
    "test/browser/foreign-pages.test.ts › a page of %s runs no script in the origin of a logged-in dashboard",
    "test/hostile/foreign-answers.test.ts › gives every answer of the gateway and of agents the headers that make a page inert",
    "test/hostile/foreign-answers.test.ts › drops from a provider's answer whatever speaks for this origin, and replaces its policies by ours",
    "test/hostile/foreign-answers.test.ts › keeps an agent from setting the dashboard's session and from speaking for the origin",
  ],
  "Agents do not see the service's own secrets": [
    "test/conformance/agents-modules.test.ts › agents see the environment without the service's own secrets",
  ],
  "An agent's uncaught error does not end the process": [
    "test/faults/uncaught-errors.test.ts › goes on serving everybody after an agent's errors of every kind, and counts them",
    "packages/signalbox/src/telemetry/uncaught-errors.test.ts › logs neither what an error carries along nor more than some of a long text",
    "packages/signalbox/src/telemetry/uncaught-errors.test.ts › logs a flood as a few lines and a count, and counts all of it",
  ],
  "Nothing happens before the signature holds": [
    "test/conformance/webhook-intake.test.ts › creates no instance, grows no file, and learns nothing, however often they try",
    "test/conformance/webhook-intake.test.ts › that is %s is 401, the same for an entity that exists and one that does not",
  ],
  "Entities never share an instance": [
    "packages/signalbox/src/webhooks/entity-claims.test.ts › no two entities share an instance, whatever their names and the order in which they arrive",
    "test/conformance/webhook-entities.test.ts › a repository and an organisation whose names read alike have an instance each",
  ],
  "A delivery is for the entity its sender names": [
    "test/conformance/webhook-entities.test.ts › must be the one that the signed body of /webhooks/%s means",
    "test/conformance/webhook-entities.test.ts › is 400 and creates nothing: %s",
  ],
  "Schemes that sign a time refuse old deliveries": [
    "test/conformance/webhook-intake.test.ts › stripe: a stale or future time is 401",
    "test/hostile/webhook-replays.test.ts › cannot be sent under another id, at another time, to another entity, or late",
  ],
  "A webhook secret is generated on the embedded database only": [
    "test/conformance/webhook-secret.test.ts › on the embedded database one is made, kept over restarts, and readable by its owner only",
    "test/conformance/webhook-secret.test.ts › on PostgreSQL it must be set: without it every delivery is 401, and the log says what to set",
  ],
  "Secret headers of custom providers are sealed": [
    "test/hostile/provider-secret-headers.test.ts › stores them sealed: the database alone gives nothing away, and a copied row does not open",
    "test/hostile/provider-secret-headers.test.ts › takes stored values away when the address changes, and says so",
    "test/hostile/provider-secret-headers.test.ts › seals what an older version stored in plain text, at the next start",
  ],
  "Provider keys are not stored": [
    "test/conformance/gateway-management.test.ts › is told clearly that keys are not stored",
    "test/conformance/gateway-cache-and-limits.test.ts › appear nowhere but upstream",
  ],
};

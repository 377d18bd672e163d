/**
 * WebSockets below `/v1`: realtime sessions with a provider, and calls at the universal endpoint (`universal-sockets.ts`). The order of work is that of a call: path → gateway → token → provider → limits →
 * upstream. The provider is dialled before the client's handshake is answered, so that a refusal of either has an HTTP status, and so that a
 * stranger costs no connection, no memory and no row.
 * See docs/decisions/0183.
 */
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import { WebSocketServer, type ServerOptions, type WebSocket } from "ws";
import type { Tokens } from "../../accounts/index.ts";
import type { AlertFeedSlot } from "../../contracts/alert-feed.ts";
import type { OwnServer } from "../../contracts/own-server.ts";
import type { CallSink } from "../../engines/call-log/index.ts";
import {
  type HttpRequest,
  type MemoryBudget,
  sendFinalAnswer,
  toIncomingMessage,
} from "../../engines/http-server/index.ts";
import { NO_USAGE, type UpstreamRequest } from "../../engines/relay/index.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { type Caller, holderOf } from "../keys/caller-token.ts";
import { judgedCallOf } from "../call/call-runner.ts";
import { noteFindings } from "../call/note-findings.ts";
import type { Findings } from "../guardrails/findings.ts";
import type { Guardrails } from "../guardrails/guardrails.ts";
import type { Judges } from "../guardrails/judges.ts";
import { SessionGuard } from "../guardrails/session-guard.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { Limits } from "../limits/limits.ts";
import type { PriceTable } from "../limits/price-table.ts";
import type { GatewayMetrics } from "../metrics.ts";
import { CLOSE_TIMEOUT_MS, dial, type Dialled } from "./dial.ts";
import { type EndCause, Session, type SessionEnd } from "./session.ts";
import { SessionAccount } from "./session-account.ts";
import { SessionList } from "./session-list.ts";
import { SessionMeter } from "./session-meter.ts";
import { recordSession, type SessionStart } from "./session-record.ts";
import { SessionTranscript } from "./session-transcript.ts";
import { chooseSubprotocol } from "./subprotocols.ts";
import { type AdmissionParts, type Admitted, admitSession } from "./admission.ts";
import { refusalHead, requireHandshake } from "./handshake.ts";
import { parseUniversalPath, UniversalSockets } from "./universal-sockets.ts";

export interface RealtimeParts extends AdmissionParts {
  readonly tokens: Tokens;
  /** For calls at the universal endpoint. */
  readonly server: OwnServer;
  readonly metrics: GatewayMetrics;
  readonly limits: Limits;
  readonly prices: PriceTable;
  readonly callLog: CallSink;
  readonly budget: MemoryBudget;
  readonly guardrails: Guardrails;
  readonly judges: Judges;
  /** Describes ended sessions to OpenTelemetry; null inside while nothing does. */
  readonly tracing: { readonly current: SessionTracing | null };
  readonly alertFeed: AlertFeedSlot;
  /** How many bytes of each direction the log stores. */
  readonly payloadBytes: number;
  readonly connectTimeoutMs: number;
  readonly stallTimeoutMs: number;
  readonly maxSessions: number;
  readonly maxMessageBytes: number;
  readonly maxSessionMs: number;
  readonly idleTimeoutMs: number;
}

/** Receives every ended session. */
interface SessionTracing {
  sessionEnded(
    start: SessionStart,
    end: SessionEnd,
    traceparent: string | undefined,
    findings: Findings,
  ): void;
}

interface Incoming {
  readonly request: HttpRequest;
  readonly socket: Duplex;
  readonly head: Buffer;
}

const POLICY = 1008;
const TOKEN_ENDED = 4401;
const SWITCHED = 101;

export class RealtimeDoor {
  readonly #parts: RealtimeParts;
  readonly #server: WebSocketServer;
  readonly #sessions: SessionList;
  readonly #universal: UniversalSockets;
  /** What the handshake of a request answers. */
  readonly #answers = new WeakMap<
    object,
    { readonly protocol: string | false; readonly marks: Readonly<Record<string, string>> }
  >();

  constructor(parts: RealtimeParts) {
    this.#parts = parts;
    this.#sessions = new SessionList({ ...parts, maxBufferedBytes: parts.budget.max }, parts.metrics);
    this.#server = this.#createServer();
    this.#universal = new UniversalSockets(parts, this.#sessions);
    parts.gateways.listen({
      onChanged: () => undefined,
      onDeleted: (gateway) => this.#sessions.endOf(gateway, POLICY, "The gateway was deleted"),
    });
  }

  /** Closes all sessions. */
  close(): void {
    this.#sessions.close();
    this.#universal.close();
  }

  async upgrade(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): Promise<void> {
    try {
      requireHandshake(request);
      const universal = parseUniversalPath(context.path);
      if (universal !== null) {
        this.#universal.upgrade(universal, request, socket, head, context);
        return;
      }
      const admitted = admitSession(this.#parts, request, context);
      if (!this.#parts.callLog.hasRoom) await this.#parts.callLog.whenRoom();
      await this.#open(admitted, { request, socket, head });
    } catch (error) {
      if (error instanceof SignalboxError) this.#parts.metrics.refused(error.id);
      throw error;
    }
  }

  async #open(admitted: Admitted, incoming: Incoming): Promise<void> {
    const { step, dialect, start, gateway, caller } = admitted;
    const { socket } = incoming;
    const account = new SessionAccount({
      limits: this.#parts.limits,
      prices: this.#parts.prices,
      provider: step.provider.slug,
      options: start.options,
      tokenId: caller.tokenId,
      gateway: () => this.#parts.gateways.find(gateway.accountId, gateway.id) ?? gateway,
      token: () => this.#tokenNow(caller),
    });
    let session: Session | null = null;
    const abort = new AbortController();
    const onClose = () => abort.abort();
    // Nothing that may throw stands between the place and the block that gives it back.
    const place = this.#sessions.reserve(holderOf(caller, gateway));
    if (place === null) {
      throw new SignalboxError(this.#sessions.isStopping ? "stopping" : "overloaded", {
        headers: { "retry-after": "1" },
      });
    }
    socket.once("close", onClose);
    try {
      const refusal = await account.open(step.model, dialect.isKnown);
      if (refusal !== null) throw refusal;
      const dialled = await this.#dial(admitted, abort.signal);
      if (dialled.kind === "open") session = this.#accept(admitted, incoming, account, dialled.socket);
      else if (!abort.signal.aborted) this.#refuse(admitted, socket, dialled);
    } finally {
      socket.off("close", onClose);
      if (session === null) account.close();
      this.#sessions.opened(session, place);
    }
  }

  /** Dials with one stored key after the other while keys are refused. */
  async #dial({ step, protocols }: Admitted, signal: AbortSignal): Promise<Dialled> {
    for (;;) {
      const key = (await step.keys?.pick(step.upstream)) ?? null;
      if (key instanceof SignalboxError) throw key;
      const upstream: UpstreamRequest = key?.upstream ?? step.upstream;
      const dialled = await dial(upstream, protocols.offered, this.#parts, signal);
      const status = dialled.kind === "refused" ? dialled.status : dialled.kind === "open" ? 200 : null;
      if (key !== null) {
        const seconds = dialled.kind === "refused" ? Number(dialled.retryAfter) : Number.NaN;
        const retryAfterMs = Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : null;
        step.keys?.report(key, { status, retryAfterMs });
      }
      if (dialled.kind !== "refused" || step.keys?.hasOther(status) !== true || signal.aborted)
        return dialled;
      this.#parts.metrics.retried(step.provider.slug);
    }
  }

  #refuse({ start, step }: Admitted, socket: Duplex, dialled: Exclude<Dialled, { kind: "open" }>): void {
    const isRefused = dialled.kind === "refused";
    const status = isRefused ? dialled.status : dialled.error.status;
    recordSession(this.#parts, start, {
      status,
      isComplete: false,
      firstByteMs: isRefused ? performance.now() - start.startedAt : null,
      spend: null,
      model: step.model,
      transcript: null,
      responseBody: isRefused ? dialled.body : null,
      guard: null,
    });
    this.#parts.metrics.ended(step.provider.slug, status, null, NO_SPEND);
    if (!isRefused) throw dialled.error;
    const head = refusalHead(dialled, marksOf(start));
    sendFinalAnswer(socket, Buffer.concat([Buffer.from(head, "latin1"), dialled.body]));
  }

  /** Null when the client has left during the handshake. */
  #accept(
    admitted: Admitted,
    { request, socket, head }: Incoming,
    account: SessionAccount,
    provider: WebSocket,
  ): Session | null {
    const { protocols, start } = admitted;
    this.#answers.set(toIncomingMessage(request), {
      protocol: chooseSubprotocol(provider.protocol, protocols),
      marks: marksOf(start),
    });
    let session: Session | null = null;
    if (!socket.destroyed) {
      // Synchronous: the handshake of the client has been received.
      this.#server.handleUpgrade(toIncomingMessage(request), socket, head, (client) => {
        // The session listens, too; `ws` closes the socket itself after a protocol error.
        client.on("error", () => undefined);
        session = this.#start(admitted, socket, account, client, provider);
      });
    }
    if (session === null) provider.terminate();
    else provider.resume();
    return session;
  }

  #start(
    { dialect, step, start, caller, gateway }: Admitted,
    socket: Duplex,
    account: SessionAccount,
    client: WebSocket,
    provider: WebSocket,
  ): Session {
    const { metrics, authenticator, budget, payloadBytes } = this.#parts;
    const firstByteMs = performance.now() - start.startedAt;
    const memory = budget.shareOf(holderOf(caller, gateway));
    const transcript = new SessionTranscript(start.logDetail === "bodies" ? payloadBytes : 0, memory);
    const slug = step.provider.slug;
    const { traceparent } = start;
    const meter = new SessionMeter({
      dialect,
      provider: slug,
      account,
      token: () => this.#tokenNow(caller),
      model: step.model,
      isCustomCost: start.options.customCost !== undefined,
      onUsed: (used) => {
        transcript.used(used);
        metrics.used(slug, used);
      },
    });
    const { gateways, guardrails, judges } = this.#parts;
    const rulesNow = () =>
      guardrails.rulesFor(
        gateways.find(gateway.accountId, gateway.id) ?? gateway,
        this.#tokenNow(caller),
        start.options.guardrails,
      );
    const call = judgedCallOf({ gateway, caller }, start.options.metadata ?? null);
    const guard = new SessionGuard(rulesNow, { judges, call });
    const session: Session = new Session({
      client,
      provider,
      dialect,
      meter,
      transcript,
      guard,
      gateway,
      receivedBytes: () => ("bytesRead" in socket ? Number(socket.bytesRead) : 0),
      onEnd: (ended, { cause, code, spend, error }) => {
        this.#sessions.ended(ended);
        metrics.sessionEnded(cause);
        this.#parts.tracing.current?.sessionEnded(
          start,
          { cause, code, spend, error },
          traceparent,
          guard.findings,
        );
        noteFindings(this.#parts, gateway, guard.findings);
        this.#parts.alertFeed.current?.call({
          accountId: gateway.accountId,
          gatewayId: gateway.id,
          provider: slug,
          isFailed: !isGoodEnd(cause, code),
          durationMs: firstByteMs,
          cost: spend.cost ?? 0,
        });
        const status = error === null ? SWITCHED : error.status;
        metrics.ended(slug, status, null, { ...NO_SPEND, state: spend.state });
        recordSession(this.#parts, start, {
          status,
          isComplete: isGoodEnd(cause, code),
          firstByteMs,
          spend,
          model: meter.model,
          transcript,
          responseBody: null,
          guard,
        });
      },
    });
    const { token } = caller;
    if (token !== null) {
      const end = () => session.end("credential", TOKEN_ENDED, "The token has ended");
      session.whileOpen(authenticator.watch({ kind: "token", token }, end));
    }
    return session;
  }

  #tokenNow({ token }: Caller): Caller["token"] {
    return token === null ? null : (this.#parts.tokens.find(token.accountId, token.id) ?? token);
  }

  #createServer(): WebSocketServer {
    // The types of `ws` lack `closeTimeout`.
    const options: ServerOptions & { readonly closeTimeout: number } = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: this.#parts.maxMessageBytes,
      closeTimeout: CLOSE_TIMEOUT_MS,
      handleProtocols: (_protocols, request) => this.#answers.get(request)?.protocol ?? false,
    };
    const server = new WebSocketServer(options);
    server.on("error", () => undefined);
    server.on("headers", (headers, request) => {
      const marks = this.#answers.get(request)?.marks ?? {};
      for (const [name, value] of Object.entries(marks)) headers.push(`${name}: ${value}`);
    });
    // `requireHandshake` has checked the request; without a listener `ws` would send a response of its own.
    server.on("wsClientError", ({ message }) => {
      throw new SignalboxError("malformed_http", { message });
    });
    return server;
  }
}

/** The headers that name the session, and its row if it has one. */
function marksOf({ id, logDetail }: SessionStart): Record<string, string> {
  return { "gw-aig-request-id": id, ...(logDetail === "none" ? {} : { "gw-aig-log-id": id }) };
}

/** Whether the session ended as sessions do: its client left, the provider was done, or the gateway closed it in time. */
function isGoodEnd(cause: EndCause, code: number): boolean {
  if (cause === "provider") return code === 1000 || code === 1001 || code === 1005;
  return cause === "client" || cause === "idle" || cause === "time" || cause === "stopping";
}

const NO_SPEND: CallSpend = {
  state: "none",
  usage: NO_USAGE,
  model: "",
  named: null,
  cost: 0,
  isCostEstimated: false,
  isCustomCost: false,
};

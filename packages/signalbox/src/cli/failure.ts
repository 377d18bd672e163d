/**
 * An error as the user sees it: one line, or a JSON document with `--json`, and an exit code. Errors are recognized by name where importing their
 * class would load the client or the service.
 */
import type { SignalboxApiError } from "@signalbox/client";
import type { SignalboxError } from "@signalbox/protocol";
import { ConfigError } from "../core/config-error.ts";
import { DataFolderError } from "../core/data-folder-error.ts";
import { plainText } from "../core/plain-text.ts";
import type { ListenError } from "../http/listen-error.ts";
import { UsageError } from "./command.ts";
import { OutputClosedError } from "./output.ts";
import { InterruptedError } from "./stop-signal.ts";

export interface Failure {
  readonly message: string;
  /** Number of the error table; 0 for an error that is not from a server. */
  readonly code: number;
  readonly reason:
    | "usage"
    | "config"
    | "data_folder"
    | "archive"
    | "listen"
    | "storage"
    | "server"
    | "unreachable"
    | "output"
    | "interrupted"
    | "internal";
  /** 1: the request or the command failed. 2: the command line or the configuration is invalid. */
  readonly exitCode: 1 | 2;
}

export async function toFailure(error: unknown): Promise<Failure> {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof UsageError || nameOf(error) === "InvalidNameError")
    return { message, code: 0, reason: "usage", exitCode: 2 };
  if (error instanceof ConfigError) return { message, code: 0, reason: "config", exitCode: 2 };
  if (error instanceof DataFolderError) return { message, code: 0, reason: "data_folder", exitCode: 1 };
  if (nameOf(error) === "ArchiveError") return { message, code: 0, reason: "archive", exitCode: 1 };
  if (error instanceof OutputClosedError) return { message, code: 0, reason: "output", exitCode: 1 };
  if (error instanceof InterruptedError) return { message, code: 0, reason: "interrupted", exitCode: 1 };
  if (isApiError(error)) {
    if (error.status !== 0) return { message, code: error.code, reason: "server", exitCode: 1 };
    return { message: explainNetwork(error), code: 0, reason: "unreachable", exitCode: 1 };
  }
  if (isListenError(error)) {
    const { explainListen } = await import("./listen-failure.ts");
    return { message: explainListen(error), code: 0, reason: "listen", exitCode: 1 };
  }
  if (isStorageError(error)) return { message, code: error.code, reason: "storage", exitCode: 1 };
  const stack = error instanceof Error ? (error.stack ?? message) : message;
  return { message: stack, code: 0, reason: "internal", exitCode: 1 };
}

/** Without control characters: a message of the server may contain text that another client sent. */
export function toLine({ message, code }: Failure): string {
  return `signalbox: ${plainText(message + (code === 0 ? "" : ` (code ${code})`))}\n`;
}

/** The envelope of the management interface, with the reason. */
export function toDocument({ message, code, reason, exitCode }: Failure): string {
  const errors = [{ code, message: plainText(message), reason }];
  return `${JSON.stringify({ success: false, errors, messages: [], result: null, exit_code: exitCode })}\n`;
}

export function isApiError(error: unknown): error is SignalboxApiError {
  return nameOf(error) === "SignalboxApiError";
}

function nameOf(error: unknown): string | undefined {
  return error instanceof Error ? error.name : undefined;
}

function isListenError(error: unknown): error is ListenError {
  return nameOf(error) === "ListenError";
}

/** PostgreSQL, or the disk, fails while the service starts. */
function isStorageError(error: unknown): error is SignalboxError {
  return nameOf(error) === "SignalboxError" && (error as SignalboxError).id === "storage_unavailable";
}

/** The words of OpenSSL and fetch are for their developers. */
function explainNetwork(error: SignalboxApiError): string {
  const code = causeCode(error);
  const url = /^cannot reach (\S+): /.exec(error.message)?.[1] ?? "the server";
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "ERR_SSL_PACKET_LENGTH_TOO_LONG")
    return `cannot reach ${url}: the server answers without TLS; use ${url.replace("https:", "http:")}`;
  if (
    url.startsWith("http:") &&
    (code === "ECONNRESET" || code === "UND_ERR_SOCKET" || code.startsWith("HPE_"))
  )
    return `cannot reach ${url}: the server closed the connection without an HTTP answer; if it uses TLS, use ${url.replace("http:", "https:")}`;
  if (/SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/.test(code))
    return `cannot reach ${url}: its certificate is not trusted (${code}); set NODE_EXTRA_CA_CERTS to the file of its authority`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `${error.message}; use an address that the certificate is for, for example --url https://NAME:PORT`;
  // A list of the fetch standard, so that a web page cannot talk to mail servers and the like.
  if (error.message.endsWith(": bad port"))
    return `cannot reach ${url}: port ${new URL(url).port} is reserved for another protocol, and HTTP clients refuse it; let the server listen on another port`;
  if (code === "ECONNREFUSED") return `cannot reach ${url}: no server listens there (ECONNREFUSED)`;
  return error.message;
}

function causeCode(error: unknown): string {
  let code = "";
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") code = at.code;
  }
  return code;
}

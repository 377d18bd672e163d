/**
 * The receivers of a gateway's telemetry (`otel`). Headers may be credentials: they are stored encrypted, bound to the gateway and the address, and
 * never shown. `HIDDEN` in place of a value means the stored one, so that a client can send back what it read.
 */
import { invalidRequest } from "../../core/invalid-request.ts";
import type { Sealing } from "../../core/sealing.ts";
import { isPrivateHost } from "../../engines/ip-address/index.ts";
import type { OtlpReceiver } from "../../engines/otlp-export/index.ts";
import { HIDDEN } from "../providers/secret-headers.ts";
import type { Gateway } from "./gateway.ts";
import type { GatewaySettings, OtelReceiver } from "./gateway-settings.ts";

export interface OtelReceiversParts {
  readonly sealing: Sealing;
  readonly mayBePrivate: boolean;
}

type GatewayName = Pick<Gateway, "accountId" | "id">;
type Wanted = Partial<GatewaySettings>;

const AUTHORIZATION = "authorization";
const TIMEOUT_MS = 10_000;

export class OtelReceivers {
  readonly #parts: OtelReceiversParts;

  constructor(parts: OtelReceiversParts) {
    this.#parts = parts;
  }

  /** The settings as they are stored. `present` are those before the change; null for a new gateway. */
  seal(gateway: GatewayName, wanted: Wanted, present: readonly OtelReceiver[] | null): Wanted {
    const { otel } = wanted;
    if (otel === undefined || otel === null) return wanted;
    return { ...wanted, otel: otel.map((receiver) => this.#seal(gateway, receiver, present ?? [])) };
  }

  #seal(gateway: GatewayName, receiver: OtelReceiver, present: readonly OtelReceiver[]): OtelReceiver {
    const { url, headers, authorization } = receiver;
    if (!this.#parts.mayBePrivate && isPrivateHost(new URL(url).hostname))
      throw invalidRequest(`otel: ${new URL(url).hostname} is a private address`);
    const stored = present.find((one) => one.url === url);
    const seal = (name: string, value: string, before: string | undefined) => {
      if (value !== HIDDEN) return this.#parts.sealing.seal(value, contextOf(gateway, url, name));
      if (before === undefined)
        throw invalidRequest(
          `otel: ${HIDDEN} means the stored value of ${name}, but none is stored for this address`,
        );
      return before;
    };
    return {
      ...receiver,
      headers: Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, seal(name, value, stored?.headers[name])]),
      ),
      ...(authorization === undefined
        ? {}
        : { authorization: seal(AUTHORIZATION, authorization, stored?.authorization) }),
    };
  }

  /** For the exporter. A value that no key decrypts leaves its receiver out: it would be refused there. */
  open(gateway: Gateway): OtlpReceiver[] {
    return (gateway.settings.otel ?? []).flatMap(({ url, headers, authorization, content_type: format }) => {
      const sealed = Object.entries({
        ...headers,
        ...(authorization === undefined ? {} : { authorization }),
      });
      const opened = sealed.map(
        ([name, text]) =>
          [name, this.#parts.sealing.open(text, contextOf(gateway, url, name))?.text] as const,
      );
      if (opened.some(([, text]) => text === undefined)) return [];
      return {
        url,
        headers: Object.fromEntries(opened.map(([name, text]) => [name, text ?? ""])),
        format,
        isCompressed: false,
        timeoutMs: TIMEOUT_MS,
        mayBePrivate: this.#parts.mayBePrivate,
      };
    });
  }
}

/** The settings as they are shown. */
export function hideOtel(otel: readonly OtelReceiver[] | null): OtelReceiver[] | null {
  if (otel === null) return null;
  return otel.map((receiver) => ({
    ...receiver,
    headers: Object.fromEntries(Object.keys(receiver.headers).map((name) => [name, HIDDEN])),
    ...(receiver.authorization === undefined ? {} : { authorization: HIDDEN }),
  }));
}

function contextOf({ accountId, id }: GatewayName, url: string, name: string): string {
  return JSON.stringify(["otel", accountId, id, url, name.toLowerCase()]);
}

/**
 * Opens the listeners: one for everything or, if an admin address is configured, one for traffic and one for dashboard and management interface.
 * With two listeners the dashboard and the management interface can be on another network, and have an origin that no response of a
 * provider or agent shares.
 * See http/README.md.
 */
import type { Logger } from "../telemetry/logger.ts";
import type { HttpMetrics } from "../telemetry/metrics.ts";
import type { Area, FallbackArea, PlaceAtHost } from "./area.ts";
import { toListenError } from "./listen-error.ts";
import { type AdmitRequest, Dispatcher } from "./dispatch.ts";
import {
  type BoundAddress,
  isLoopback,
  Listener,
  type ListenerEngine,
  type ListenerLimits,
  type ServerCertificate,
  urlOf,
} from "../engines/http-server/index.ts";

export interface ListenAddress {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
}

export interface FrontOptions {
  /** Areas for callers, webhook senders and clients of agents. */
  readonly traffic: readonly Area[];
  /** Areas for operators. */
  readonly administration: readonly Area[];
  /** Areas on both addresses: the dashboard and commands need them at the admin address. */
  readonly shared: readonly Area[];
  /** Answers all other paths of the traffic address; null: they are not found. */
  readonly fallback: FallbackArea | null;
  /** Paths of host names that stand for a part of the traffic; null: there are none. */
  readonly placeAtHost: PlaceAtHost | null;
  /** Health checks of the traffic address, if it is a separate one. */
  readonly health: Area;
  readonly address: ListenAddress;
  /** Null: one address for everything. */
  readonly adminAddress: ListenAddress | null;
  /** Whether a request may be handled, in a cluster; null: always. */
  readonly admit: AdmitRequest | null;
  readonly engine: ListenerEngine;
  readonly limits: ListenerLimits;
  /** Of both addresses; null: plain HTTP. */
  readonly certificate: ServerCertificate | null;
  readonly metrics: HttpMetrics;
  readonly logger: Logger;
}

export interface Front {
  /** URL of the traffic. */
  readonly url: string;
  /** URL of the dashboard and the management interface; equal to `url` unless they have a separate address. */
  readonly adminUrl: string;
  readonly adminPort: number;
  /** True if other machines can reach the address of the traffic. */
  readonly isExposed: boolean;
  /** True if other machines can reach the address of the dashboard and the management interface. */
  readonly isAdminExposed: boolean;
  /**
   * Still accepts requests, and connections unless another process accepts them; each response closes its connection, so that clients reconnect
   * elsewhere.
   */
  retire(acceptsConnections: boolean): void;
  /** Stops accepting connections; running requests continue. */
  drain(): void;
  /** Waits for running requests, at most `graceMs`, then closes the remaining connections. */
  close(graceMs: number): Promise<void>;
}

export async function openFront(options: FrontOptions): Promise<Front> {
  const { traffic, administration, shared, health, adminAddress } = options;
  const isOne = adminAddress === null;
  const listeners: Listener[] = [];
  const open = async (
    areas: readonly Area[],
    address: ListenAddress,
    fallback: FallbackArea | null,
    placeAtHost: PlaceAtHost | null,
  ): Promise<BoundAddress> => {
    const { metrics, logger, admit } = options;
    const dispatcher = new Dispatcher(areas, metrics, logger, fallback, admit, placeAtHost);
    const listener = new Listener(dispatcher, options.limits, options.certificate, options.engine);
    const prefix = address === adminAddress ? "--admin-" : "--";
    const bound = await listener.listen(address.host, address.port).catch((error: unknown) => {
      throw toListenError(error, {
        ...address,
        hostOption: `${prefix}host`,
        portOption: `${prefix}port`,
      });
    });
    listeners.push(listener);
    return bound;
  };
  const close = async (graceMs: number) => {
    await Promise.all(listeners.map((listener) => listener.close(graceMs)));
  };
  const drain = () => {
    for (const listener of listeners) listener.drain();
  };
  try {
    // The admin address first: when the traffic port is open, both are.
    const admin = isOne ? null : await open([...administration, ...shared], adminAddress, null, null);
    const bound = await open(
      isOne ? [...administration, ...traffic, ...shared] : [health, ...traffic, ...shared],
      options.address,
      options.fallback,
      options.placeAtHost,
    );
    return {
      url: urlOf(bound),
      adminUrl: urlOf(admin ?? bound),
      adminPort: (admin ?? bound).port,
      isExposed: !isLoopback(bound),
      isAdminExposed: !isLoopback(admin ?? bound),
      retire: (acceptsConnections) => {
        for (const listener of listeners) listener.retire(acceptsConnections);
      },
      drain,
      close,
    };
  } catch (error) {
    drain();
    await close(0);
    throw error;
  }
}

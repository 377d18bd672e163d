/**
 * The service's listeners: one for everything, or, where the operator gives the administration an address of its own, one for traffic and one for
 * the rest. The second way keeps the dashboard and the management interface off the network that callers, senders and clients come from, and
 * on an origin that no provider's or agent's answer shares.
 */
import type { Logger } from "../telemetry/logger.ts";
import type { HttpMetrics } from "../telemetry/metrics.ts";
import type { Area } from "./area.ts";
import { Dispatcher } from "./dispatch.ts";
import {
  type BoundAddress,
  isLoopback,
  Listener,
  type ListenerLimits,
  urlOf,
} from "../engines/http-server/index.ts";

export interface ListenAddress {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
}

export interface FrontOptions {
  /** What callers, senders and agents' clients use. */
  readonly traffic: readonly Area[];
  /** What operators use. */
  readonly administration: readonly Area[];
  /** Traffic that the dashboard needs on its own origin, and commands where they reach the management interface. */
  readonly shared: readonly Area[];
  /** Health for the address of the traffic, when that is one of its own. */
  readonly health: Area;
  readonly address: ListenAddress;
  /** Null: everything on the one address. */
  readonly adminAddress: ListenAddress | null;
  readonly limits: ListenerLimits;
  readonly metrics: HttpMetrics;
  readonly logger: Logger;
}

export interface Front {
  /** Where traffic goes. */
  readonly url: string;
  /** Where the dashboard and the management interface are; the same as `url` unless they have an address of their own. */
  readonly adminUrl: string;
  readonly adminPort: number;
  /** Whether other machines can reach the traffic's address, and the administration's. */
  readonly isExposed: boolean;
  readonly isAdminExposed: boolean;
  /** Stops accepting; running requests go on. */
  drain(): void;
  /** Waits for what runs, at most `graceMs`, then cuts the rest. */
  close(graceMs: number): Promise<void>;
}

export async function openFront(options: FrontOptions): Promise<Front> {
  const { traffic, administration, shared, health, adminAddress } = options;
  const isOne = adminAddress === null;
  const listeners: Listener[] = [];
  const open = async (areas: readonly Area[], address: ListenAddress): Promise<BoundAddress> => {
    const listener = new Listener(new Dispatcher(areas, options.metrics, options.logger), options.limits);
    const bound = await listener.listen(address.host, address.port);
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
    // The administration first: whoever finds the traffic's port open finds the other one open, too.
    const admin = isOne ? null : await open([...administration, ...shared], adminAddress);
    const bound = await open(
      isOne ? [...administration, ...traffic, ...shared] : [health, ...traffic, ...shared],
      options.address,
    );
    return {
      url: urlOf(bound),
      adminUrl: urlOf(admin ?? bound),
      adminPort: (admin ?? bound).port,
      isExposed: !isLoopback(bound),
      isAdminExposed: !isLoopback(admin ?? bound),
      drain,
      close,
    };
  } catch (error) {
    drain();
    await close(0);
    throw error;
  }
}

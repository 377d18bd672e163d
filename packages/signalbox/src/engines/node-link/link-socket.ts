/**
 * The sockets of links: plain TCP, or TLS whose pre-shared key is derived from the cluster's secret, so that encryption needs no
 * certificates. The handshake of `handshake.ts` runs on top of both.
 */
import { hkdfSync } from "node:crypto";
import { connect as connectTcp, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { Newcomers } from "./newcomers.ts";

/** What `Link` uses of a socket. */
export interface LinkSocket {
  readonly writableLength: number;
  cork(): void;
  uncork(): void;
  write(bytes: Buffer): boolean;
  pause(): void;
  resume(): void;
  destroy(): void;
}

export interface LinkSecurity {
  readonly secret: string;
  /** Encrypts links and protects them against changes. Must be the same on all nodes. */
  readonly isEncrypted: boolean;
}

/** Pre-shared key with an ephemeral key exchange: a secret that leaks later does not reveal recorded traffic. */
const CIPHERS = "ECDHE-PSK-CHACHA20-POLY1305:DHE-PSK-AES256-GCM-SHA384:DHE-PSK-AES128-GCM-SHA256";
const IDENTITY = "signalbox";

/** Creates a server that is not listening; `onSocket` gets sockets after their TLS handshake. */
export function createLinkServer(security: LinkSecurity, onSocket: (socket: Socket) => void): Server {
  const server = security.isEncrypted
    ? createEncryptedServer(security, onSocket)
    : createTcpServer({ noDelay: true }, onSocket);
  server.on("error", () => {
    // Errors of `listen` are reported by its promise; later errors concern single connections (EMFILE) and pass.
  });
  return server;
}

function createEncryptedServer(security: LinkSecurity, onSocket: (socket: Socket) => void): Server {
  const newcomers = new Newcomers();
  const server = createTlsServer(
    {
      ciphers: CIPHERS,
      minVersion: "TLSv1.2",
      maxVersion: "TLSv1.2",
      handshakeTimeout: 5000,
      pskCallback: (_socket, identity) => (identity === IDENTITY ? pskOf(security) : null),
    },
    (socket) => {
      newcomers.removePeer(socket);
      onSocket(socket);
    },
  );
  server.on("connection", (socket: Socket) => newcomers.add(socket));
  // A stranger's failed TLS handshake. Node leaves the socket open if the handshake took too long.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

/** The socket emits `ready` events of its kind; `onReady` is called when bytes can be sent. */
export function dialSocket(
  address: { readonly host: string; readonly port: number },
  security: LinkSecurity,
  onReady: (socket: Socket) => void,
): Socket {
  if (!security.isEncrypted) {
    const socket = connectTcp({ ...address, noDelay: true });
    socket.once("connect", () => onReady(socket));
    return socket;
  }
  const socket = connectTls({
    ...address,
    ciphers: CIPHERS,
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.2",
    pskCallback: () => ({ psk: pskOf(security), identity: IDENTITY }),
    // There is no certificate: the key exchange itself proves that the other side knows the secret.
    checkServerIdentity: () => undefined,
  });
  socket.setNoDelay(true);
  socket.once("secureConnect", () => onReady(socket));
  return socket;
}

function pskOf({ secret }: LinkSecurity): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", "signalbox node link tls", 32));
}

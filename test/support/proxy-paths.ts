/** Where nginx and Caddy are. `npm test` installs them on Debian as root. */
import { existsSync } from "node:fs";

export function findNginx(): string | null {
  return find(process.env["NGINX_PATH"] ?? "/usr/sbin/nginx");
}

export function findCaddy(): string | null {
  return find(process.env["CADDY_PATH"] ?? "/usr/bin/caddy");
}

export const NGINX_IS_MISSING =
  "nginx is missing: install it (Debian: apt-get install nginx-light) or set NGINX_PATH";
export const CADDY_IS_MISSING =
  "Caddy is missing: install it (Debian: apt-get install caddy) or set CADDY_PATH";

function find(path: string): string | null {
  return existsSync(path) ? path : null;
}

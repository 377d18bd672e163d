/** The server side of the dashboard: files, sessions and login links. The page is in `packages/dashboard`. */
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { isRootToken } from "../accounts/index.ts";
import { z } from "zod";
import type { AreaModule } from "../area-module.ts";
import type { RequestContext } from "../http/request-context.ts";
import { defineRoute } from "../http/route.ts";
import { type BuiltFiles, readBuiltFiles } from "./built-files.ts";
import { serveFile } from "./serve-files.ts";
import { SessionDoor, type SessionDoorParts } from "./session-door.ts";

export function createDashboardArea(parts: SessionDoorParts): AreaModule {
  let files: BuiltFiles | null = null;
  const door = new SessionDoor(parts);
  return {
    mounts: [
      {
        name: "dashboard",
        // The empty segment is the path `/`.
        segments: ["dashboard", ""],
        dialect: "envelope",
        isAlwaysServed: () => true,
        async handle(request, response, context) {
          if (context.segments[0] === "") {
            redirectToDashboard(request, response, context);
            return;
          }
          const name = context.segments.slice(1).join("/");
          const code = name === "login" ? new URLSearchParams(context.query).get("code") : null;
          if (name === "session") await door.session(request, response, context);
          else if (name === "first-commands") door.firstCommands(request, response);
          else if (code !== null && request.method === "GET")
            await door.loginByLink(request, response, context, code);
          else {
            files ??= readBuiltFiles();
            serveFile(request, response, files, name);
          }
        },
      },
    ],
    routes: [
      defineRoute({
        method: "POST",
        effect: "create",
        path: "/login-links",
        access: "root",
        summary: "Create a login link for the dashboard that is valid once, for ten minutes.",
        result: z.object({ path: z.string(), expires_at: z.iso.datetime() }),
        handler: async ({ principal }) => {
          if (!isRootToken(principal)) throw new SignalboxError("forbidden");
          const { code, expiresAt } = await parts.sessions.createLoginCode();
          return {
            result: { path: loginPath(code), expires_at: new Date(expiresAt).toISOString() },
            headers: { "cache-control": "no-store" },
          };
        },
      }),
    ],
  };
}

/** Redirects browsers from `/` to the dashboard. Other clients receive 404, and 200 for a HEAD: some clients of models check their base address. */
function redirectToDashboard(request: HttpRequest, response: HttpResponse, context: RequestContext): void {
  const wantsPage = request.headers.accept?.includes("text/html") === true;
  if (context.path === "/" && request.method === "HEAD" && !wantsPage) {
    response.writeHead(200, { "content-length": 0 });
    response.end();
    return;
  }
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (context.path !== "/" || !isRead || !wantsPage) {
    throw new SignalboxError("not_found", { message: "Not found; the dashboard is at /dashboard" });
  }
  response.writeHead(303, { location: "/dashboard/", "content-length": 0 });
  response.end();
}

export function loginPath(code: string): string {
  return `/dashboard/login?code=${code}`;
}

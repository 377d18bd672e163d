import type { HttpResponse } from "../../engines/http-server/index.ts";

export function sendJson(response: HttpResponse, value: object): void {
  sendJsonText(response, JSON.stringify(value));
}

export function sendJsonText(response: HttpResponse, json: string): void {
  const body = Buffer.from(json);
  response.writeHead(200, [
    "content-type",
    "application/json; charset=utf-8",
    "content-length",
    String(body.length),
  ]);
  response.end(body);
}

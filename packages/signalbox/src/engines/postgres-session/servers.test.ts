import { expect, it } from "vitest";
import { Servers } from "./servers.ts";

it("keeps a connection string with one server as it is", () => {
  const url = "postgres://u:p%40@h:5432/db?sslmode=require";
  const servers = new Servers(url);
  servers.next();
  expect([servers.count, servers.current]).toEqual([1, url]);
});

it("goes through several servers in order, and around", () => {
  const servers = new Servers("postgresql://u:p,w@a:5432,b,[::1]:5433/db?x=1,2");
  const seen = Array.from({ length: 4 }, () => {
    const { current } = servers;
    servers.next();
    return current;
  });
  expect(seen).toEqual([
    "postgresql://u:p,w@a:5432/db?x=1,2",
    "postgresql://u:p,w@b/db?x=1,2",
    "postgresql://u:p,w@[::1]:5433/db?x=1,2",
    "postgresql://u:p,w@a:5432/db?x=1,2",
  ]);
});

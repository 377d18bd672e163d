import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { expect, it } from "vitest";
import { useAgent } from "./use-agent.ts";

it("renders on a server without a socket and without an address", () => {
  let opened = 0;
  function Page() {
    const { status, state } = useAgent({
      agent: "Counter",
      openSocket: () => {
        opened++;
        throw new Error("must not be opened");
      },
    });
    return createElement("p", null, `${status} ${String(state)}`);
  }
  expect(renderToString(createElement(Page))).toBe("<p>idle undefined</p>");
  expect(opened).toBe(0);
});

/** Lines that other tests run, because they take long or install something. The page is run without them. */
export const COVERED_LINES: readonly { readonly line: RegExp; readonly test: string }[] = [
  {
    line: /^npm ci( --omit=dev)? && npm (start|test)\b.*$/gm,
    test: "test/packages/first-commands.long.test.ts",
  },
  {
    line: /^npm start -w @signalbox\/example-(chat|handbook|live-repository|slack-bot|support-inbox|device-fleet)\b.*$/gm,
    test: "test/examples/example-pages.test.ts",
  },
  {
    line: /^npm start -w @signalbox\/example-tenants\b.*$/gm,
    test: "test/examples/started-examples.long.test.ts",
  },
  {
    line: /^npm start -w @signalbox\/example-counter-agent\b.*$/gm,
    test: "test/examples/counter-agent.test.ts",
  },
  { line: /^npm start -w @signalbox\/example-cluster\b.*$/gm, test: "test/examples/cluster.long.test.ts" },
  {
    line: /^npm start -w @signalbox\/example-node-script\b.*$/gm,
    test: "test/examples/node-script.test.ts",
  },
  { line: /^(npx )?signalbox \w+ tail\b.*$/gm, test: "test/conformance/cli-logs.test.ts" },
  {
    line: /^SIGNALBOX_URL=\S+ SIGNALBOX_TOKEN=.* npm start -w .*$/gm,
    test: "test/examples/node-script.test.ts",
  },
];

export function withoutCoveredLines(code: string): string {
  return COVERED_LINES.reduce((text, { line }) => text.replaceAll(line, ":"), code);
}

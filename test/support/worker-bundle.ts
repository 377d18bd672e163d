/** A worker and its packages in one file, for bare workerd, which has no loader of its own. */
import { builtinModules } from "node:module";
import { build, type Plugin } from "esbuild";

export async function bundleWorker(entry: string, minify = false): Promise<Uint8Array> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    plugins: [requiredBuiltins],
    minify,
    keepNames: true,
    logLevel: "error",
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error("esbuild wrote no bundle");
  return file.contents;
}

/** CommonJS packages inside the bundle require Node's modules, but an ES module can only import them. */
const requiredBuiltins: Plugin = {
  name: "required builtins",
  setup(bundling) {
    const filter = new RegExp(`^(node:)?(${builtinModules.join("|")})$`);
    bundling.onResolve({ filter }, ({ path, kind }) => {
      const name = path.startsWith("node:") ? path : `node:${path}`;
      return kind === "require-call" ? { path: name, namespace: "builtin" } : { path: name, external: true };
    });
    bundling.onLoad({ filter: /./, namespace: "builtin" }, ({ path }) => ({
      contents: `export * from "${path}"; export { default } from "${path}";`,
    }));
  },
};

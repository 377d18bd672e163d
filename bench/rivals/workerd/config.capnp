# Bare workerd: the bundled worker, one folder of SQLite files, one HTTP port. Values between @ are replaced at the start.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "storage", disk = (path = "storage", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:@PORT@", http = (), service = "main")],
  # The agents package imports the e-mail module, which only the hosted platform has.
  extensions = [(modules = [(name = "cloudflare-internal:email", esModule = embed "email.js", internal = true)])],
);

const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-10-01",
  bindings = [
    (name = "CounterAgent", durableObjectNamespace = "CounterAgent"),
    (name = "WebhookAgent", durableObjectNamespace = "RepositoryAgent"),
    (name = "GITHUB_WEBHOOK_SECRET", text = "@SECRET@"),
  ],
  durableObjectNamespaces = [
    (className = "CounterAgent", uniqueKey = "counter", enableSql = true),
    (className = "RepositoryAgent", uniqueKey = "webhook", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "storage"),
);

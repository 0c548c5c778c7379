/** Serves the built page as a plain static host does, below a path, without special headers. A test can make single files fail. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const kTypes: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".bin": "application/octet-stream",
};
const kPage = fileURLToPath(new URL("../../../build/web/", import.meta.url));

/** What comes in place of a file: "missing" = 404, "html" = a start page with 200, as hosts of single-page sites do, "never" = no answer. */
export type Trouble = "missing" | "html" | "never";

export class StaticServer {
  /** Applied to every path that it matches. */
  trouble: { readonly path: RegExp; readonly kind: Trouble } | undefined;
  readonly #server: Server;
  readonly #base: string;

  private constructor(base: string) {
    this.#base = base;
    this.#server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://localhost").pathname;
      const trouble = this.trouble?.path.test(path) ? this.trouble.kind : undefined;
      if (trouble === "never") return;
      if (trouble === "html")
        return void response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>start</title>");
      if (trouble === "missing" || !path.startsWith(base)) return void response.writeHead(404).end("not found");
      const relative = normalize(path.slice(base.length) || "index.html");
      readFile(join(kPage, relative)).then(
        (bytes) => {
          const type = kTypes[extname(relative)] ?? "application/octet-stream";
          response.writeHead(200, { "content-type": type, "content-length": bytes.length }).end(bytes);
        },
        () => response.writeHead(404).end("not found"),
      );
    });
  }

  /** base begins and ends with a slash: "/", "/app/". */
  static async start(base = "/"): Promise<StaticServer> {
    if (!existsSync(join(kPage, "index.html")))
      throw new Error("build/web is not there: npm run test:browser builds the page and runs these tests.");
    const server = new StaticServer(base);
    await new Promise<void>((resolve) => server.#server.listen(0, "localhost", resolve));
    return server;
  }

  get origin(): string {
    return `http://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  get address(): string {
    return this.origin + this.#base;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

// A client made with one of the TypeScript SDKs, led by a test: lines of JSON on stdin and stdout.
//
// argv: {"modules", "sdk": "v1"|"v2", "era": "legacy"|"modern", "elicit": action or null,
//        "url", "token"} or {…, "command"}
// in:   {"id", "tool", "arguments", "options"}   call a tool        {"cancel": id}   give one up
// out:  {"connected": protocol version}, {"began": id}, {"id", "result"} or {"id", "error"};
//       {"progress": id} for each progress, {"asked": message} for each elicitation

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const wanted = JSON.parse(process.argv[2]);
const require = createRequire(`${wanted.modules}/`);
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

const sdk = wanted.sdk === "v1" ? first() : second();
const capabilities = wanted.elicit === null ? {} : { elicitation: { form: {} } };
const client = new sdk.Client({ name: `typescript-${wanted.sdk}`, version: "1" }, {
  capabilities,
  versionNegotiation: { mode: wanted.era === "modern" ? { pin: "2026-07-28" } : "legacy" },
});
if (wanted.elicit !== null) {
  client.setRequestHandler(sdk.elicitation, async (request) => {
    say({ asked: request.params.message });
    return { action: wanted.elicit, ...(wanted.elicit === "accept" ? { content: {} } : {}) };
  });
}
await client.connect(transport());
say({ connected: sdk.version() });

const calls = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if ("cancel" in message) calls.get(message.cancel).abort();
  else call(message);
}
await client.close();

async function call({ id, tool, arguments: args, options }) {
  const leave = new AbortController();
  calls.set(id, leave);
  const all = { timeout: 120000, ...options, signal: leave.signal };
  if (options?.progress) all.onprogress = () => say({ progress: id });
  try {
    const result = await sdk.callTool({ name: tool, arguments: args }, all);
    say({ id, result });
  } catch (error) {
    say({ id, error: `${error.name} ${error.code ?? ""} ${error.message}` });
  }
}

function transport() {
  if (wanted.command) return new sdk.Stdio({ command: wanted.command, env: process.env, stderr: "inherit" });
  const headers = { Authorization: `Bearer ${wanted.token}` };
  return new sdk.Http(new URL(wanted.url), { requestInit: { headers } });
}

function first() {
  const root = "@modelcontextprotocol/sdk";
  const { ElicitRequestSchema } = require(`${root}/types.js`);
  const { StdioClientTransport } = require(`${root}/client/stdio.js`);
  const { StreamableHTTPClientTransport } = require(`${root}/client/streamableHttp.js`);
  return {
    Client: require(`${root}/client/index.js`).Client,
    Stdio: StdioClientTransport,
    Http: StreamableHTTPClientTransport,
    elicitation: ElicitRequestSchema,
    callTool: (params, options) => client.callTool(params, undefined, options),
    version: () => client.transport.protocolVersion ?? "legacy",
  };
}

function second() {
  const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
  const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");
  return {
    Client,
    Stdio: StdioClientTransport,
    Http: StreamableHTTPClientTransport,
    elicitation: "elicitation/create",
    callTool: (params, options) => client.callTool(params, options),
    version: () => client.getNegotiatedProtocolVersion?.() ?? "unknown",
  };
}

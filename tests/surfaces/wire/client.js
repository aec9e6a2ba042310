// A client of the wire protocol that knows nothing but the address: it gets the messages by reflection.
// Usage: node client.js ADDRESS TOKEN. Prints one JSON document.
const { GrpcReflection } = require("grpc-js-reflection-client");
const grpc = require("@grpc/grpc-js");

const [address, token] = process.argv.slice(2);
const credentials = grpc.ChannelCredentials.createInsecure();
const SERVICE = "albert.tool.v1.ToolKernel";

const SOURCE = `def shout(text: str) -> str:
    """Say it louder.

    Args:
        text: What to say.
    """
    return text.upper()
`;

async function main() {
  const reflection = new GrpcReflection(address, credentials);
  const services = await reflection.listServices();
  const descriptor = await reflection.getDescriptorBySymbol(SERVICE);
  const kernel = new (descriptor.getPackageObject({ keepCase: true, longs: Number }).albert.tool.v1.ToolKernel)(
    address,
    credentials,
  );
  const metadata = new grpc.Metadata();
  metadata.set("session-token", token);

  const ask = (fields) =>
    new Promise((resolve, reject) => {
      const request = { request_id: "from node", session_token: token, ...fields };
      kernel.Invoke(request, (error, response) => (error ? reject(error) : resolve(response)));
    });
  const call = (name, args) => ask({ tool_call: { name, arguments_json: JSON.stringify(args) } });
  const json = (response) => JSON.parse(response.success.inline_result.toString());

  const put = (chunks) =>
    new Promise((resolve, reject) => {
      const stream = kernel.PutContent(metadata, (error, found) => (error ? reject(error) : resolve(found.hash)));
      for (const data of chunks) stream.write({ data });
      stream.end();
    });
  const get = (hash) =>
    new Promise((resolve, reject) => {
      const parts = [];
      const stream = kernel.GetContent({ hash }, metadata);
      stream.on("data", (chunk) => parts.push(chunk.data));
      stream.on("error", reject);
      stream.on("end", () => resolve(Buffer.concat(parts)));
    });

  await ask({ file_write: { path: "bytes", content: Buffer.from([0, 255, 10]) } });
  const read = await ask({ file_read: { path: "bytes" } });
  await call("define_tool", { source: SOURCE });
  const ran = json(await call("shout", { text: "hello" }));
  const invalid = await ask({ file_read: { path: "../x", limit: 2 ** 40 } });
  const refused = await call("define_tool", { source: "def f(" });
  const content = Buffer.alloc(3 << 20, "node");
  const hash = await put([content.subarray(0, 1 << 20), content.subarray(1 << 20)]);
  const published = json(
    await ask({ artifact_publish: { artifact_id: "a", category: "c", content_hash: hash, metadata: ["by=node"] } }),
  );
  console.log(
    JSON.stringify({
      services,
      read: [...read.success.inline_result],
      request_id: read.request_id,
      ran,
      violations: invalid.denied.violations.map((v) => `${v.field} ${v.rule}`),
      refused: refused.denied.rationale_code,
      same: (await get(hash)).equals(content),
      size: published.size_bytes,
    }),
  );
  kernel.close();
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

// Reads a list of exchanges (JSON) from standard input, validates each against the swagger files below the folder that is
// given, and writes for each its operation and what is wrong. Usage: node validate.cjs SWAGGER-FOLDER < exchanges.json
const path = require("path");
const { LiveValidator } = require(require.resolve("oav/dist/lib/liveValidation/liveValidator", { paths: [process.cwd()] }));

async function main() {
  const directory = path.resolve(process.argv[2]);
  const validator = new LiveValidator({
    directory,
    // Only what the lab answers; what these refer to is found by itself.
    swaggerPathsPattern: [
      "/specification/compute/resource-manager/Microsoft.Compute/ComputeRP/stable/**/{virtualMachine,virtualMachineScaleSet,runCommand}.json",
      "/specification/network/resource-manager/Microsoft.Network/stable/**/{networkInterface,vmssNetworkInterface,virtualNetwork}.json",
    ],
    git: { shouldClone: false },
  });
  await validator.initialize();
  let text = "";
  for await (const block of process.stdin) text += block;
  const results = [];
  for (const exchange of JSON.parse(text)) {
    const result = await validator.validateLiveRequestResponse({ liveRequest: exchange.request, liveResponse: exchange.response });
    const issues = [];
    for (const side of [result.requestValidationResult, result.responseValidationResult]) {
      if (side.runtimeException) issues.push({ code: side.runtimeException.code, message: side.runtimeException.message, path: "" });
      for (const error of side.errors ?? []) issues.push({ code: error.code, message: error.message, path: (error.jsonPathsInPayload ?? []).join(" ") });
    }
    results.push({ operation: result.responseValidationResult.operationInfo?.operationId ?? "", issues });
  }
  process.stdout.write(JSON.stringify(results));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

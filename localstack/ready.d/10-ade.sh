#!/bin/sh
# Makes ade-drop's queues and table when LocalStack or a drop-in replacement is ready. `ade infra init` does the same
# from outside, on any endpoint; whichever comes second changes nothing.
set -eu
aws() { command awslocal "$@" 2>/dev/null || command aws --endpoint-url "${AWS_ENDPOINT_URL:-http://localhost:4566}" "$@"; }

for queue in ade-work ade-events; do
  aws sqs create-queue --queue-name "$queue-dead" --attributes MessageRetentionPeriod=1209600 >/dev/null
  aws sqs create-queue --queue-name "$queue" --attributes MessageRetentionPeriod=604800 >/dev/null
done
aws dynamodb describe-table --table-name ade-jobs >/dev/null 2>&1 ||
  aws dynamodb create-table --cli-input-json "file://$(dirname "$0")/table.json" >/dev/null
echo "ade-drop: queues and table are there"

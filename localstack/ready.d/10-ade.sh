#!/bin/sh
# Makes ade-drop's queues and table when LocalStack or a drop-in replacement is ready: at every start, because the free
# image keeps neither. `ade infra init` does the same from outside, on any endpoint; whichever comes second changes
# nothing. What exists is left alone: a queue must not be created again with attributes that are written otherwise.
set -eu
export AWS_DEFAULT_REGION="${AWS_DEFAULT_REGION:-us-east-1}"
if command -v awslocal >/dev/null; then aws=awslocal; else aws="aws --endpoint-url ${AWS_ENDPOINT_URL:-http://localhost:4566}"; fi

there() { $aws sqs get-queue-url --queue-name "$1" >/dev/null 2>&1; }

# queue NAME RECEIVES: a queue and its dead letters, which outlive it; after so many receives a message goes there
queue() {
  there "$1-dead" || $aws sqs create-queue --queue-name "$1-dead" --attributes MessageRetentionPeriod=1209600 >/dev/null
  there "$1" && return
  url=$($aws sqs get-queue-url --queue-name "$1-dead" --query QueueUrl --output text)
  arn=$($aws sqs get-queue-attributes --queue-url "$url" --attribute-names QueueArn --query Attributes.QueueArn --output text)
  redrive="{\\\"deadLetterTargetArn\\\": \\\"$arn\\\", \\\"maxReceiveCount\\\": \\\"$2\\\"}"
  $aws sqs create-queue --queue-name "$1" \
    --attributes "{\"MessageRetentionPeriod\": \"604800\", \"RedrivePolicy\": \"$redrive\"}" >/dev/null
}

queue ade-work 50
queue ade-events 5
case ",${SERVICES:-dynamodb}," in # a server that was started without DynamoDB has no table
  *,dynamodb,*)
    $aws dynamodb describe-table --table-name ade-jobs >/dev/null 2>&1 ||
      $aws dynamodb create-table --cli-input-json "file://$(dirname "$0")/table.json" >/dev/null
    echo "ade-drop: queues and table are there"
    ;;
  *) echo "ade-drop: queues are there; no table, SERVICES names no dynamodb" ;;
esac

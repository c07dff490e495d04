"""What AWS charges, as named inputs: public list prices of us-east-1, on demand, as of November 2026.

Check them against the price pages before you plan with them, and change them here.
"""

REGION, AS_OF = "us-east-1", "2026-11"

S3_PUT = 5.0e-6  # PUT, COPY, POST (of parts) and LIST, each
S3_GET = 0.4e-6  # GET and HEAD, each; DELETE costs nothing
S3_STORAGE_GB_MONTH = 0.023
SQS_REQUEST = 0.4e-6  # standard queue, each; a batch of up to ten is one
DYNAMODB_WRITE = 0.625e-6  # on-demand write unit
DYNAMODB_READ = 0.125e-6  # on-demand read unit
DYNAMODB_STORAGE_GB_MONTH = 0.25
LAMBDA_REQUEST = 0.2e-6
LAMBDA_GB_SECOND = 1.66667e-5
FARGATE_VCPU_HOUR = 0.04048
FARGATE_GB_HOUR = 0.004445

_S3 = {"GetObject": S3_GET, "HeadObject": S3_GET, "DeleteObject": 0.0, "DeleteObjects": 0.0}


def request_price(name: str) -> float:
    """Of one request; DynamoDB charges by units, not by requests."""
    service, _, operation = name.partition(" ")
    if service == "S3":
        return _S3.get(operation, S3_PUT)
    return SQS_REQUEST if service == "SQS" else 0.0

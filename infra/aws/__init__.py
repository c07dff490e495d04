"""Adapters for AWS, and for servers that speak its protocols: S3, SQS, DynamoDB, ECS."""

"""Deployment: the CloudFormation template and images, the handler package, a cloud on this machine."""

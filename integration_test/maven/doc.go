// Package maven fetches released Java libraries, with all that they need at run time, into
// folders. It uses the command mvn and that command's settings. The tests with several
// versions of ZooKeeper or Curator use it: a distribution has only one version of each.
package maven
